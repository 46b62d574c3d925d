package config

import (
	"encoding"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// encodable returns why a format cannot carry values of the type, or nil. What hides
// behind an interface only shows when it comes.
func encodable(t reflect.Type, format string) error {
	if where, what := unencodable(t, format, t.String(), make(map[reflect.Type]bool)); what != "" {
		return fmt.Errorf("%s cannot carry values of %v: %s is %s", format, t, where, what)
	}
	return nil
}

var ownForm = map[string][]reflect.Type{
	"json":    {reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()},
	"msgpack": {reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](), reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.TextMarshaler]()},
	"gob":     {reflect.TypeFor[gob.GobEncoder](), reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.TextMarshaler]()},
}

// unencodable finds the first part of a type that the format has no form for.
func unencodable(t reflect.Type, format, path string, seen map[reflect.Type]bool) (where, what string) {
	if seen[t] {
		return "", ""
	}
	seen[t] = true
	for _, own := range ownForm[format] {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return "", ""
		}
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return path, "a " + t.Kind().String()
	case reflect.Complex64, reflect.Complex128:
		if format != "gob" {
			return path, "a complex number"
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return unencodable(t.Elem(), format, path, seen)
	case reflect.Map:
		if format == "json" && !jsonKey(t.Key()) {
			return path, fmt.Sprintf("a map whose keys, %v, are neither text nor whole numbers", t.Key())
		}
		return unencodable(t.Elem(), format, path, seen)
	case reflect.Struct:
		return unencodableField(t, format, path, seen)
	}
	return "", ""
}

func unencodableField(t reflect.Type, format, path string, seen map[reflect.Type]bool) (where, what string) {
	exported := 0
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		exported++
		if tag := f.Tag.Get(format); tag == "-" {
			continue
		}
		if k := f.Type.Kind(); format == "gob" && (k == reflect.Chan || k == reflect.Func) {
			continue // gob leaves these out
		}
		if where, what := unencodable(f.Type, format, path+"."+f.Name, seen); what != "" {
			return where, what
		}
	}
	if exported == 0 && t.NumField() > 0 {
		return path, "a struct without exported fields, of which nothing would be kept"
	}
	return "", ""
}

func jsonKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// rawFor returns the codec of bytes, or of strings, if V is one of these.
func rawFor[V any]() (tier.Codec[V], error) {
	for _, c := range []any{codec.Raw(), codec.String()} {
		if c, ok := c.(tier.Codec[V]); ok {
			return c, nil
		}
	}
	return nil, fmt.Errorf("raw carries []byte and string, not values of %v: want json, msgpack or gob", reflect.TypeFor[V]())
}
