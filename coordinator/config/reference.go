package config

import (
	"fmt"
	"reflect"
	"strings"
)

// reference returns the tables of docs/configuration.md.
func (r *Registry) reference() string {
	var b strings.Builder
	for _, part := range []struct {
		title, path string
		t           reflect.Type
	}{
		{"A cache", "caches.NAME", reflect.TypeFor[cacheSpec]()},
		{"A tier", "caches.NAME.tiers[]", reflect.TypeFor[tierSpec]()},
		{"Breaker", "caches.NAME.tiers[].breaker", reflect.TypeFor[breakerSpec]()},
		{"Compression", "caches.NAME.tiers[].compression", reflect.TypeFor[compressionSpec]()},
		{"Encryption", "caches.NAME.tiers[].encryption", reflect.TypeFor[encryptionSpec]()},
		{"Lifetime", "caches.NAME.lifetime", reflect.TypeFor[lifetimeSpec]()},
		{"Refresh", "caches.NAME.refresh", reflect.TypeFor[refreshSpec]()},
		{"Lease", "caches.NAME.lease", reflect.TypeFor[leaseSpec]()},
		{"Bus", "caches.NAME.bus", reflect.TypeFor[busSpec]()},
		{"Limits", "caches.NAME.limits", reflect.TypeFor[limitsSpec]()},
		{"Backoff", "caches.NAME.backoff", reflect.TypeFor[backoffSpec]()},
	} {
		fmt.Fprintf(&b, "### %s: `%s`\n\n", part.title, part.path)
		tiers := part.t == reflect.TypeFor[tierSpec]()
		if tiers {
			b.WriteString("| field | of the backends | value | left out | live | |\n|---|---|---|---|---|---|\n")
		} else {
			b.WriteString("| field | value | left out | live | |\n|---|---|---|---|---|\n")
		}
		for _, f := range fieldsOf(part.t) {
			backends := ""
			if tiers {
				backends = " " + r.backendsOf(&f) + " |"
			}
			fmt.Fprintf(&b, "| `%s` |%s %s | %s | %s | %s |\n", f.key, backends, cell(r.valueOf(part.t.Field(f.index).Type, &f)), cell(f.leftOut()), f.liveness(), cell(f.doc))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// backendsOf names the backends that have a field.
func (r *Registry) backendsOf(f *field) string {
	if f.backends == nil {
		return "all"
	}
	names := make([]string, len(f.backends))
	for i, b := range f.backends {
		names[i] = map[string]string{"memory": "in memory", "bytes": "shared", "store": "registered stores"}[b]
		if names[i] == "" {
			names[i] = b
		}
	}
	return strings.Join(names, ", ")
}

// valueOf says how a field is written.
func (r *Registry) valueOf(t reflect.Type, f *field) string {
	if s, ok := reflect.New(t).Interface().(scalar); ok {
		shape := s.shape(f, r)
		if shape.enum != nil {
			return "`" + strings.Join(shape.enum, "` `") + "`"
		}
		return shape.want
	}
	switch {
	case t == reflect.TypeFor[*node]():
		return "anything"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[secret]():
		return "a list of mappings, see below"
	case t.Kind() == reflect.Slice:
		return "a list: " + r.valueOf(t.Elem(), f)
	default:
		return "a mapping, see below"
	}
}

func (f *field) leftOut() string {
	switch {
	case f.must:
		return "not allowed"
	case f.standard != "":
		return f.standard
	default:
		return ""
	}
}

func (f *field) liveness() string {
	if f.live {
		return "yes"
	}
	return "no"
}

// cell makes text fit for a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
