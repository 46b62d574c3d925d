package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// difference is a field that two versions of a cache do not have in common.
type difference struct {
	path    string
	was, is string // as they can be shown
	live    bool
	tier    string // whose field it is, if it is a tier's
}

// leaf is a single value of a cache.
type leaf struct {
	shown string
	same  string // what must be equal
	live  bool
	tier  string
}

// differences returns what is not as it was, by path.
func differences(name string, was, is *cacheSpec) []difference {
	var all []difference
	a, b := was.leaves(name, is), is.leaves(name, was)
	paths := maps.Clone(a)
	maps.Copy(paths, b)
	for _, path := range sortedKeys(paths) {
		if x, y := a[path], b[path]; x.same != y.same {
			all = append(all, difference{path: path, was: x.shown, is: y.shown, live: paths[path].live, tier: paths[path].tier})
		}
	}
	return all
}

// leaves returns all values that are there. Tiers are known by their names, and one that
// the other version has not is one value.
func (c *cacheSpec) leaves(name string, other *cacheSpec) map[string]leaf {
	all := make(map[string]leaf)
	path := joinPath("caches", name)
	var order []string
	for _, t := range c.Tiers {
		order = append(order, string(t.Name))
	}
	tiers := strings.Join(order, ", ")
	all[path+".tiers"] = leaf{shown: tiers, same: tiers}
	both := *c
	both.Tiers = nil
	for _, t := range c.Tiers {
		if other.tier(string(t.Name)) != nil {
			both.Tiers = append(both.Tiers, t)
		} else {
			all[path+".tiers."+string(t.Name)] = leaf{shown: string(t.Backend), same: "there"}
		}
	}
	walk(reflect.ValueOf(&both).Elem(), path, "", all)
	return all
}

func walk(v reflect.Value, path, tier string, all map[string]leaf) {
	for _, f := range fieldsOf(v.Type()) {
		walkField(v.Field(f.index), joinPath(path, f.key), f.live, tier, all)
	}
}

func walkField(v reflect.Value, path string, live bool, tier string, all map[string]leaf) {
	if s, ok := v.Addr().Interface().(scalar); ok {
		l := leaf{shown: s.show(), same: s.show(), live: live, tier: tier}
		if secret, ok := s.(*secret); ok && secret.given() {
			l.same = secret.reveal()
		}
		if l.same != "" {
			all[path] = l
		}
		return
	}
	switch {
	case v.Type() == reflect.TypeFor[*node]():
		if n := v.Interface().(*node); n != nil {
			all[path] = leaf{shown: "(options)", same: fmt.Sprintf("%#v", n.plain()), live: live, tier: tier}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			item := v.Index(i)
			if t, ok := item.Addr().Interface().(*tierSpec); ok {
				walk(item, joinPath(path, string(t.Name)), string(t.Name), all)
			} else {
				walkField(item, fmt.Sprintf("%s[%d]", path, i), live, tier, all)
			}
		}
	default:
		walk(v, path, tier, all)
	}
}

// clone returns a copy whose caches can be replaced.
func (d *Document) clone() *Document {
	c := *d
	c.spec.Caches = maps.Clone(d.spec.Caches)
	return &c
}

// clone returns a copy whose parts can be replaced.
func (c *cacheSpec) clone() *cacheSpec {
	copied := *c
	copied.Tiers = slices.Clone(c.Tiers)
	return &copied
}

// tier returns the tier of that name, or nil.
func (c *cacheSpec) tier(name string) *tierSpec {
	for i := range c.Tiers {
		if string(c.Tiers[i].Name) == name {
			return &c.Tiers[i]
		}
	}
	return nil
}
