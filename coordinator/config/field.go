package config

import (
	"reflect"
	"slices"
	"strings"
)

// field is what the tags of a field of the document's types say. Parser, schema and
// reference are made of it.
type field struct {
	index    int
	key      string   // its name in YAML
	doc      string   // what it is, in one or more sentences
	eg       string   // an example of its value
	standard string   // what it is where it is left out, in words
	live     bool     // it can be changed while the cache runs
	must     bool     // it must be there
	forever  bool     // of a duration: "forever" is one
	zero     bool     // of a duration: zero is one
	of       string   // of a choice: which names of the registry, or the names themselves
	backends []string // of a tier: the backends, or kinds of them, that have it; none: all
	secret   bool
}

// also are other names that people know the fields by.
var also = map[string]string{
	"type": "backend", "store": "backend", "kind": "backend", "driver": "backend",
	"size": "capacity", "maxsize": "capacity", "entries": "capacity", "maxentries": "capacity", "maxcost": "capacity",
	"expiry": "ttl", "expiration": "ttl", "expire": "ttl",
	"address": "url", "addr": "url", "dsn": "url", "host": "url",
	"hosts": "servers", "addrs": "servers", "addresses": "servers",
	"swr": "stale_while_revalidate", "stale": "stale_while_revalidate", "sie": "stale_if_error",
	"negativettl": "absent", "negative": "absent", "compress": "compression", "encrypt": "encryption",
	"serializer": "codec", "format": "codec", "encoding": "codec", "strategy": "policy", "algorithm": "eviction",
	"maxflights": "flights", "loadtimeoutms": "load_timeout",
}

// fieldsOf returns the fields of a struct of the document, in order.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key := tag.Get("key")
		if key == "" {
			continue
		}
		f := field{
			index:    i,
			key:      key,
			doc:      tag.Get("doc"),
			eg:       tag.Get("eg"),
			standard: tag.Get("default"),
			live:     tag.Get("live") == "yes",
			must:     tag.Get("must") == "yes",
			forever:  tag.Get("forever") == "yes",
			zero:     tag.Get("zero") == "yes",
			of:       tag.Get("of"),
			secret:   t.Field(i).Type == reflect.TypeFor[secret]() || t.Field(i).Type == reflect.TypeFor[[]secret](),
		}
		if b := tag.Get("for"); b != "" {
			f.backends = strings.Split(b, ",")
		}
		all = append(all, f)
	}
	return all
}

func (f *field) example(otherwise string) string {
	if f.eg != "" {
		return f.eg
	}
	return otherwise
}

// choices returns the names that a choice has.
func (f *field) choices(r *Registry) []string {
	switch f.of {
	case "backends":
		return r.backendNames()
	case "evictions":
		return r.evictionNames()
	case "codecs":
		return r.codecNames()
	case "policies":
		return r.policyNames()
	default:
		return strings.Split(f.of, ",")
	}
}

// belongs reports whether a tier with the backend has the field.
func (f *field) belongs(backend string, r *Registry) bool {
	if f.backends == nil {
		return true
	}
	return slices.Contains(f.backends, backend) || slices.Contains(f.backends, r.kindOf(backend)) ||
		slices.Contains(f.backends, "registered") && r.isRegistered(backend)
}

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}
