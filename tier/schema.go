package tier

import (
	"hash/crc32"
	"reflect"
	"strconv"
)

// schemaOf names what the payload is, so that bytes written for another type are
// never decoded as this one: a codec that ignores what it does not know would make
// a plausible zero value of them. A named type is its package path and name, so a
// type may gain fields without losing the cache. Types of one name that are declared
// inside functions of one package cannot be told apart: give EncodeOptions.Schema.
func schemaOf[V any](codecName string) string {
	return codecName + " " + typeName(reflect.TypeFor[V]())
}

func typeName(t reflect.Type) string {
	if t.Name() != "" {
		if t.PkgPath() == "" {
			return t.Name()
		}
		return t.PkgPath() + "." + t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeName(t.Elem())
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + typeName(t.Elem())
	case reflect.Map:
		return "map[" + typeName(t.Key()) + "]" + typeName(t.Elem())
	default:
		return t.String()
	}
}

func schemaSum(schema string) uint32 {
	return crc32.Checksum([]byte(schema), castagnoli)
}
