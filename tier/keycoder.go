package tier

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
	"strconv"
)

// KeyCoder turns keys into the texts that they have in byte stores (see
// docs/wire-format.md), and texts back into keys. It may be used concurrently.
type KeyCoder[K comparable] struct {
	text func(K) string
	form uint32
}

// NewKeyCoder returns an [ErrBadKey] for a type whose keys have no text: one that holds
// a pointer, an interface or a channel.
func NewKeyCoder[K comparable]() (*KeyCoder[K], error) {
	text, err := keyText[K]()
	if err != nil {
		return nil, err
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(formOf(reflect.TypeFor[K](), true)))
	return &KeyCoder[K]{text: text, form: h.Sum32()}, nil
}

// Form identifies how texts are made of keys. Two types of one form give equal texts to
// keys that mean the same, whatever the types' names are.
func (c *KeyCoder[K]) Form() uint32 { return c.form }

// Text returns the key's text. Different keys have different texts.
func (c *KeyCoder[K]) Text(key K) string { return c.text(key) }

// Key returns the one key that has the text, or an [ErrBadKey] if there is none.
func (c *KeyCoder[K]) Key(text string) (key K, err error) {
	v := reflect.ValueOf(&key).Elem()
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
		return key, nil
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return key, badText(v.Type())
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return key, badText(v.Type())
		}
		v.SetUint(n)
	default:
		if rest, ok := readBinary(text, v); !ok || rest != "" {
			return key, badText(v.Type())
		}
	}
	// What another text would be made of, such as "+1", or a number that does not fit.
	if c.text(key) != text {
		return key, badText(v.Type())
	}
	return key, nil
}

// badText does not hold the text: keys are not logged.
func badText(t reflect.Type) error {
	return fmt.Errorf("%w: the text is not that of a %s", ErrBadKey, t)
}

// readBinary undoes appendBinary. It reports false where the text ends too early or
// has a number that does not fit.
func readBinary(text string, v reflect.Value) (rest string, ok bool) {
	switch v.Kind() {
	case reflect.Array:
		for i := range v.Len() {
			if text, ok = readBinary(text, v.Index(i)); !ok {
				return "", false
			}
		}
		return text, true
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if !f.CanSet() { // not exported, but part of the key all the same
				f = reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
			}
			if text, ok = readBinary(text, f); !ok {
				return "", false
			}
		}
		return text, true
	case reflect.Bool:
		if text == "" || text[0] > 1 {
			return "", false
		}
		v.SetBool(text[0] == 1)
		return text[1:], true
	case reflect.String:
		n, size := binary.Uvarint([]byte(text[:min(len(text), binary.MaxVarintLen64)]))
		if size <= 0 || n > uint64(len(text)-size) {
			return "", false
		}
		v.SetString(text[size : size+int(n)])
		return text[size+int(n):], true
	}
	if len(text) < 8 {
		return "", false
	}
	n := binary.BigEndian.Uint64([]byte(text[:8]))
	text = text[8:]
	switch {
	case v.CanInt():
		v.SetInt(int64(n))
	case v.CanUint():
		v.SetUint(n)
	case v.CanFloat():
		v.SetFloat(math.Float64frombits(n))
	default: // complex
		if len(text) < 8 {
			return "", false
		}
		im := binary.BigEndian.Uint64([]byte(text[:8]))
		text = text[8:]
		v.SetComplex(complex(math.Float64frombits(n), math.Float64frombits(im)))
	}
	return text, true
}

// formOf describes how the text of a type is made.
func formOf(t reflect.Type, whole bool) string {
	switch k := t.Kind(); {
	case k == reflect.String:
		return "string"
	case k >= reflect.Int && k <= reflect.Uintptr && whole:
		return "decimal"
	case k >= reflect.Int && k <= reflect.Int64:
		return "int"
	case k >= reflect.Uint && k <= reflect.Uintptr:
		return "uint"
	case k == reflect.Float32 || k == reflect.Float64:
		return "float"
	case k == reflect.Complex64 || k == reflect.Complex128:
		return "complex"
	case k == reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), formOf(t.Elem(), false))
	case k == reflect.Struct:
		form := "{"
		for i := range t.NumField() {
			form += formOf(t.Field(i).Type, false) + ";"
		}
		return form + "}"
	default:
		return k.String()
	}
}
