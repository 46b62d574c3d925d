package config

import (
	"encoding/json"
	"reflect"
)

// Schema returns the JSON schema (draft 2020-12) of the documents that may use the
// registry's names, for editors. It takes what [Parse] takes, but for the rules that go
// over more than one field; what holds a variable it takes for right.
func (r *Registry) Schema() []byte {
	b, err := json.MarshalIndent(r.schema(true), "", "  ")
	if err != nil {
		panic(err) // it is made of maps, texts and numbers alone
	}
	return append(b, '\n')
}

// schema returns it as Go values. Without lenient it is that of a document in which the
// variables have been put in.
func (r *Registry) schema(lenient bool) object {
	s := r.schemaOf(reflect.TypeFor[documentSpec](), lenient)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Terrace caches"
	s["patternProperties"] = object{"^x-": object{}}
	return s
}

func (r *Registry) schemaOf(t reflect.Type, lenient bool) object {
	properties := object{}
	var required []string
	fields := fieldsOf(t)
	for i := range fields {
		f := &fields[i]
		s := r.schemaOfField(t.Field(f.index).Type, f, lenient)
		s["description"] = f.doc
		properties[f.key] = s
		if f.must && f.backends == nil {
			required = append(required, f.key)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		s["required"] = required
	}
	if t == reflect.TypeFor[tierSpec]() {
		s["allOf"] = r.backendSchemas(fields)
	}
	if t == reflect.TypeFor[encryptionSpec]() {
		s["oneOf"] = []object{{"required": []string{"key"}}, {"required": []string{"keys"}}}
	}
	if short := shorthand[t]; short != "" {
		for i := range fields {
			if fields[i].key == short {
				s = object{"anyOf": []object{s, r.schemaOfField(t.Field(fields[i].index).Type, &fields[i], lenient)}}
				break
			}
		}
	}
	return s
}

// backendSchemas say for each backend which fields its tiers must have, and which
// cannot.
func (r *Registry) backendSchemas(fields []field) []object {
	var all []object
	for _, backend := range r.backendNames() {
		then := object{}
		not := object{}
		var required []string
		for _, f := range fields {
			if !f.belongs(backend, r) {
				not[f.key] = false
			} else if f.must && f.backends != nil {
				required = append(required, f.key)
			}
		}
		then["properties"] = not
		if required != nil {
			then["required"] = required
		}
		all = append(all, object{
			"if":   object{"properties": object{"backend": object{"const": backend}}, "required": []string{"backend"}},
			"then": then,
		})
	}
	return all
}

func (r *Registry) schemaOfField(t reflect.Type, f *field, lenient bool) object {
	if s, ok := reflect.New(t).Interface().(scalar); ok {
		return s.shape(f, r).schema(lenient)
	}
	switch {
	case t == reflect.TypeFor[*node]():
		return object{}
	case t.Kind() == reflect.Map:
		return object{
			"type": "object", "minProperties": 1, "propertyNames": object{"pattern": namePattern},
			"additionalProperties": r.schemaOf(t.Elem().Elem(), lenient),
		}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "minItems": 1, "items": r.schemaOfField(t.Elem(), f, lenient)}
	default:
		return r.schemaOf(t, lenient)
	}
}
