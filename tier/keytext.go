package tier

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// keyText returns the function that turns keys of type K into strings for a byte
// store: different keys into different strings. Strings stay as they are and
// integers become decimal, so that an operator can find them; other kinds become a
// binary form. It returns an error for a type that has no such form.
func keyText[K comparable]() (func(K) string, error) {
	t := reflect.TypeFor[K]()
	switch t.Kind() {
	case reflect.String:
		if t == reflect.TypeFor[string]() {
			return func(k K) string { return any(k).(string) }, nil
		}
		return func(k K) string { return reflect.ValueOf(k).String() }, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(k K) string { return strconv.FormatInt(reflect.ValueOf(k).Int(), 10) }, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(k K) string { return strconv.FormatUint(reflect.ValueOf(k).Uint(), 10) }, nil
	}
	if err := hasBinaryForm(t); err != nil {
		return nil, err
	}
	return func(k K) string { return string(appendBinary(nil, reflect.ValueOf(k))) }, nil
}

func hasBinaryForm(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		return hasBinaryForm(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if err := hasBinaryForm(t.Field(i).Type); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("%w: a %s has no text of its own; give EncodeOptions.Key", ErrBadKey, t)
	}
}

// appendBinary appends v so that different values of one type never share bytes:
// everything of fixed size, strings behind their length. 0.0 and -0.0 are equal as
// keys, so they share a form too.
func appendBinary(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case reflect.String:
		return appendString(dst, v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int()))
	case reflect.Float32, reflect.Float64:
		return appendFloat(dst, v.Float())
	case reflect.Complex64, reflect.Complex128:
		c := v.Complex()
		return appendFloat(appendFloat(dst, real(c)), imag(c))
	case reflect.Array:
		for i := range v.Len() {
			dst = appendBinary(dst, v.Index(i))
		}
		return dst
	case reflect.Struct:
		for i := range v.NumField() {
			dst = appendBinary(dst, v.Field(i))
		}
		return dst
	default:
		return binary.BigEndian.AppendUint64(dst, v.Uint())
	}
}

func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		f = 0 // -0 becomes 0
	}
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
}
