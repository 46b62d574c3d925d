package tier

import (
	"reflect"
	"testing"
)

type generic[T any] struct{ V T }

// The text is part of the wire format: a change of it empties every cache.
func TestSchemaOf(t *testing.T) {
	const here = "github.com/terracecache/terrace/tier."
	for _, c := range []struct{ got, want string }{
		{schemaOf[string]("json"), "json string"},
		{schemaOf[name]("json"), "json " + here + "name"},
		{schemaOf[*name]("json"), "json *" + here + "name"},
		{schemaOf[[]*name]("msgpack"), "msgpack []*" + here + "name"},
		{schemaOf[map[string][]int]("gob"), "gob map[string][]int"},
		{schemaOf[map[name]*id]("gob"), "gob map[" + here + "name]*" + here + "id"},
		{schemaOf[[2]int]("json"), "json [2]int"},
		{schemaOf[struct{}]("json"), "json struct {}"},
		{schemaOf[any]("json"), "json interface {}"},
		{schemaOf[error]("json"), "json error"},
		{schemaOf[generic[id]]("json"), "json " + here + "generic[" + here + "id]"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if nilable(reflect.TypeFor[string]()) || !nilable(reflect.TypeFor[[]byte]()) || !nilable(reflect.TypeFor[any]()) {
		t.Error("nilable is wrong")
	}
}
