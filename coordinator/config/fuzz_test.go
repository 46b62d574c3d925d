package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// FuzzParse looks for documents that the parser takes and the schema refuses, or the
// other way round but for the rules that a schema cannot say, and for panics.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	registry := NewRegistry()
	strict, lenient := compileSchema(f, registry.schema(false)), compileSchema(f, registry.schema(true))
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "5m", "B": "10_000", "C": "lru", "EMPTY": ""}[name]
		return v, ok
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		agree(t, data, env, strict, lenient)
	})
}

// FuzzFields is FuzzParse over documents that are nearly right: each byte chooses what
// comes next.
func FuzzFields(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		choices := make([]byte, 400)
		for i := range choices {
			choices[i] = byte(rnd.Uint32())
		}
		f.Add(choices)
	}
	registry := NewRegistry()
	strict, lenient := compileSchema(f, registry.schema(false)), compileSchema(f, registry.schema(true))
	f.Fuzz(func(t *testing.T, choices []byte) {
		w := &writer{choices: choices, registry: registry}
		w.structure(reflect.TypeFor[documentSpec](), 0)
		agree(t, []byte(w.text.String()), os.LookupEnv, strict, lenient)
	})
}

// agree fails the test where parser and schemas do not.
func agree(t *testing.T, data []byte, env func(string) (string, bool), strict, lenient *jsonschema.Schema) {
	t.Helper()
	doc, err := Parse("fuzz", data, Options{Env: env})
	if doc != nil {
		_ = doc.String()
	}
	r := &reader{file: "fuzz", env: env}
	root := r.read(data)
	if root == nil || len(r.faults) > 0 {
		if err == nil {
			t.Fatal("what cannot be read was taken")
		}
		return
	}
	value, ok := root.json()
	if !ok {
		return // what JSON has no form for
	}
	structural := false
	var faults Faults
	errors.As(err, &faults)
	for _, fault := range faults {
		structural = structural || !fault.rule
	}
	refused := strict.Validate(value)
	if structural != (refused != nil) {
		t.Fatalf("parser: %v\nschema: %v\n%s", err, refused, data)
	}
	if err == nil {
		if err := lenient.Validate(value); err != nil {
			t.Fatalf("the schema for editors refuses what is right: %v\n%s", err, data)
		}
	}
}

// writer writes a document of the parser's types, as JSON, which is YAML too.
type writer struct {
	choices  []byte
	registry *Registry
	text     strings.Builder
	odd      int // oddities written
}

// mostOdd keeps most documents nearly right: among many faults one that is not agreed
// on would not show.
const mostOdd = 2

// isOdd decides whether something odd comes next.
func (w *writer) isOdd() bool {
	if w.odd >= mostOdd || w.choose(24) != 23 {
		return false
	}
	w.odd++
	return true
}

func (w *writer) oddity() { w.text.WriteString(oddities[w.choose(len(oddities))]) }

// choose returns one of n; 0 when there is nothing left to choose by.
func (w *writer) choose(n int) int {
	if len(w.choices) == 0 || n == 0 {
		return 0
	}
	c := int(w.choices[0]) % n
	w.choices = w.choices[1:]
	return c
}

var oddities = []string{
	`""`, `null`, `5`, `0`, `-1`, `1.5`, `1e3`, `0x10`, `10_000`, `1_`, `+7`, `true`, `yes`, `~`, `[]`, `{}`, `[1]`, `"5"`, `"x"`, `"5m"`, `"0s"`, `"-5m"`, `"1h30m"`, `"1d"`,
	`"999999999h"`, `"forever"`, `"10%"`, `"100%"`, `"0.5"`, `"1KiB"`, `"0B"`, `"1.5MB"`, `"10_000"`, `"256MiB "`, `"a b"`, `"l1"`, `"lru"`, `"redis"`, `"µ"`, `"5µs"`, `.inf`, `99999999999999999999`, `"none"`,
	`1`, `0.1`, `1000`, `1001`, `1000000000001`, `"\u0000"`, `"\n"`, `"redis://h:1"`, `"http://h"`, `2024-01-01`, `"1000000000000"`, `"9999999999999999"`,
}

func (w *writer) structure(t reflect.Type, depth int) {
	if w.isOdd() {
		w.oddity()
		return
	}
	backend := ""
	fields := fieldsOf(t)
	w.text.WriteByte('{')
	first := true
	for i := range fields {
		f := &fields[i]
		fits := f.belongs(backend, w.registry) || backend == ""
		if f.must && fits && w.isOdd() || !f.must && w.choose(2) == 1 || !fits && !w.isOdd() {
			continue
		}
		if !first {
			w.text.WriteString(", ")
		}
		first = false
		key := f.key
		if w.isOdd() {
			key += "x"
		}
		fmt.Fprintf(&w.text, "%q: ", key)
		if f.key == "backend" && !w.isOdd() {
			names := f.choices(w.registry)
			backend = names[w.choose(len(names))]
			fmt.Fprintf(&w.text, "%q", backend)
			continue
		}
		w.field(t.Field(f.index).Type, f, depth)
	}
	w.text.WriteByte('}')
}

func (w *writer) field(t reflect.Type, f *field, depth int) {
	if s, ok := reflect.New(t).Interface().(scalar); ok {
		w.scalar(s, f)
		return
	}
	switch {
	case w.isOdd(), t == reflect.TypeFor[*node]():
		w.oddity()
	case t.Kind() == reflect.Map:
		w.text.WriteString(`{"c": `)
		w.structure(t.Elem().Elem(), depth+1)
		w.text.WriteString("}")
	case t.Kind() == reflect.Slice:
		w.text.WriteByte('[')
		for i := range 1 + w.choose(3) {
			if i > 0 {
				w.text.WriteString(", ")
			}
			w.field(t.Elem(), f, depth+1)
		}
		w.text.WriteByte(']')
	default:
		w.structure(t, depth+1)
	}
}

func (w *writer) scalar(s scalar, f *field) {
	names := s.shape(f, w.registry).enum
	right := []string{`"1h30m"`, `"30s"`}
	switch s.(type) {
	case *capacity:
		right = []string{`5`, `10_000`, `"10_000"`, `"256MiB"`, `"1.5GB"`}
	case *count:
		right = []string{`5`, `"10_000"`, `0x10`}
	case *size:
		right = []string{`"1KiB"`, `"2MB"`}
	case *share:
		right = []string{`0.1`, `"10%"`, `0`, `1`, `"0.5"`}
	case *factor:
		right = []string{`1`, `0.5`, `1000`, `"2"`}
	case *name, *text:
		right = []string{`"l1"`, `"L_2.x-y"`, `"redis"`}
	case *secret:
		right = []string{`"redis://h:1"`, `"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="`}
	}
	switch {
	case w.isOdd():
		w.oddity()
	case names != nil:
		fmt.Fprintf(&w.text, "%q", names[w.choose(len(names))])
	default:
		w.text.WriteString(right[w.choose(len(right))])
	}
}

func seeds(f *testing.F) [][]byte {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	var all [][]byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

func compileSchema(f *testing.F, schema object) *jsonschema.Schema {
	f.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		f.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		f.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("terrace.json", value); err != nil {
		f.Fatal(err)
	}
	s, err := c.Compile("terrace.json")
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// json returns the node as an editor sees it: variables put in, numbers as numbers.
func (n *node) json() (any, bool) {
	switch n.kind {
	case mapNode:
		m := make(map[string]any, len(n.pairs))
		for _, p := range n.pairs {
			v, ok := p.value.json()
			if !ok {
				return nil, false
			}
			m[p.key] = v
		}
		return m, true
	case listNode:
		l := make([]any, len(n.items))
		for i, item := range n.items {
			v, ok := item.json()
			if !ok {
				return nil, false
			}
			l[i] = v
		}
		return l, true
	case intNode:
		i, ok := n.integer()
		if !ok {
			return nil, false
		}
		return json.Number(i.String()), true
	case floatNode:
		f, ok := n.float()
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, false
		}
		return f, true
	case boolNode:
		return n.text == "true" || n.text == "True" || n.text == "TRUE", true
	case textNode:
		return n.text, true
	default:
		return nil, true
	}
}
