package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// Registry knows the names that a document may use. It is made by [NewRegistry], with
// all that Terrace brings; what others add is registered before the document is
// parsed. It may be used concurrently. A name that is there already is refused.
type Registry struct {
	mu        sync.RWMutex
	backends  map[string]backendKind
	evictions map[string]bool // false: for registered types only
	codecs    map[string]AnyCodec
	policies  map[string]PolicyFunc

	bytes  map[string]BytesFunc
	stores map[typedName]any // StoreFunc[K, V]
	rooms  map[typedName]any // EvictionFunc[K, V]
	typed  map[typedName]any // func() tier.Codec[V]
}

// typedName is a name that stands for something of one type of keys and values.
type typedName struct {
	name       string
	key, value reflect.Type
}

// backendKind says which fields a backend's tiers have.
type backendKind uint8

const (
	inMemory  backendKind = iota + 1
	inBytes               // shared, and ours
	ofBytes               // registered: moves bytes
	ofEntries             // registered: keeps entries itself
)

// NewRegistry returns a registry with Terrace's own names.
func NewRegistry() *Registry {
	return &Registry{
		backends: map[string]backendKind{
			"memory": inMemory, "lru": inMemory, "ristretto": inMemory, "otter": inMemory, "sieve": inMemory,
			"redis": inBytes, "memcached": inBytes,
		},
		evictions: map[string]bool{"lru": true, "2q": true, "arc": true, "tinylfu": true, "w-tinylfu": true, "sieve": true},
		codecs:    map[string]AnyCodec{"json": nil, "msgpack": nil, "gob": nil, "raw": nil},
		policies: map[string]PolicyFunc{
			"fixed":  func(Params) (policy.Strategy, error) { return policy.Fixed{}, nil },
			"swr":    func(Params) (policy.Strategy, error) { return policy.StaleWhileRevalidate{}, nil },
			"xfetch": func(Params) (policy.Strategy, error) { return policy.XFetch{}, nil },
		},
		bytes:  make(map[string]BytesFunc),
		stores: make(map[typedName]any),
		rooms:  make(map[typedName]any),
		typed:  make(map[typedName]any),
	}
}

// builtIn serves those who pass no registry.
var builtIn = NewRegistry()

func orBuiltIn(r *Registry) *Registry {
	if r == nil {
		return builtIn
	}
	return r
}

// PolicyFunc makes a refresh policy of the document's options for it.
type PolicyFunc func(options Params) (policy.Strategy, error)

// BytesFunc makes a byte store of the document's options for it. The cache owns the
// store and closes it.
type BytesFunc func(options Params) (tier.Bytes, error)

// StoreFunc makes a store of entries of the document's options for it. The cache owns
// the store and closes it.
type StoreFunc[K comparable, V any] func(options Params) (tier.Store[K, V], error)

// EvictionFunc makes a store in memory for a number of entries.
type EvictionFunc[K comparable, V any] func(entries int, options Params) (tier.Store[K, V], error)

// AnyCodec turns values of any type into bytes and back, as the packages of most
// formats do. It is used concurrently, and must refuse bytes that it does not write.
type AnyCodec interface {
	// Append appends the value's bytes to dst and returns the longer slice.
	Append(dst []byte, value any) ([]byte, error)
	// Decode puts what data holds into what into points to. It may keep data.
	Decode(data []byte, into any) error
}

// RegisterPolicy adds a refresh policy, for "refresh: {policy: NAME}".
func (r *Registry) RegisterPolicy(name string, f PolicyFunc) error {
	return register(r, "policy", name, r.policies, f, func() {})
}

// RegisterBytes adds a backend that moves bytes, for "backend: NAME". Its tiers have the
// fields of a shared tier, and "options".
func (r *Registry) RegisterBytes(name string, f BytesFunc) error {
	if err := r.free("backend", name); err != nil {
		return err
	}
	return register(r, "backend", name, r.bytes, f, func() { r.backends[name] = ofBytes })
}

// RegisterCodec adds a codec, for "codec: NAME".
func (r *Registry) RegisterCodec(name string, c AnyCodec) error {
	return register(r, "codec", name, r.codecs, c, func() {})
}

// RegisterStore adds a backend that keeps entries with such keys and values itself, for
// "backend: NAME". It can be called once for each pair of types.
func RegisterStore[K comparable, V any](r *Registry, name string, f StoreFunc[K, V]) error {
	r.mu.RLock()
	kind, there := r.backends[name]
	r.mu.RUnlock()
	if there && kind != ofEntries {
		return taken("backend", name)
	}
	return register(r, "backend", typedName{name, reflect.TypeFor[K](), reflect.TypeFor[V]()}, r.stores, any(f), func() { r.backends[name] = ofEntries })
}

// RegisterEviction adds an eviction for tiers in memory with such keys and values, for
// "eviction: NAME". It can be called once for each pair of types.
func RegisterEviction[K comparable, V any](r *Registry, name string, f EvictionFunc[K, V]) error {
	r.mu.RLock()
	ours := r.evictions[name]
	r.mu.RUnlock()
	if ours {
		return taken("eviction", name)
	}
	return register(r, "eviction", typedName{name, reflect.TypeFor[K](), reflect.TypeFor[V]()}, r.rooms, any(f), func() { r.evictions[name] = false })
}

// RegisterTypedCodec adds a codec of one type of values, for "codec: NAME". It can be
// called once for each type.
func RegisterTypedCodec[V any](r *Registry, name string, c tier.Codec[V]) error {
	r.mu.RLock()
	of, there := r.codecs[name]
	r.mu.RUnlock()
	if there && (of != nil || slices.Contains([]string{"json", "msgpack", "gob", "raw"}, name)) {
		return taken("codec", name)
	}
	return register(r, "codec", typedName{name, nil, reflect.TypeFor[V]()}, r.typed, any(c), func() { r.codecs[name] = nil })
}

func register[N comparable, T any](r *Registry, what string, name N, into map[N]T, value T, also func()) error {
	text := fmt.Sprint(name)
	if t, ok := any(name).(typedName); ok {
		text = t.name
	}
	if v := reflect.ValueOf(value); !v.IsValid() || (v.Kind() == reflect.Func || v.Kind() == reflect.Pointer) && v.IsNil() {
		return fmt.Errorf("config: register the %s %q: nil", what, text)
	}
	if !compiled[registrable].MatchString(text) {
		return fmt.Errorf("config: register the %s %q: want a name of small letters, digits and -", what, text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := into[name]; there {
		return taken(what, text)
	}
	into[name] = value
	also()
	return nil
}

var registrable = pattern(`^[a-z0-9][a-z0-9-]{0,63}$`)

func taken(what, name string) error {
	return fmt.Errorf("config: register the %s %q: the name is taken", what, name)
}

func (r *Registry) free(what, name string) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, there := r.backends[name]; there {
		return taken(what, name)
	}
	return nil
}

func (r *Registry) backendNames() []string  { return namesOf(r, r.backends) }
func (r *Registry) evictionNames() []string { return namesOf(r, r.evictions) }
func (r *Registry) codecNames() []string    { return namesOf(r, r.codecs) }
func (r *Registry) policyNames() []string   { return namesOf(r, r.policies) }

func namesOf[T any](r *Registry, m map[string]T) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(m))
}

// kindOf returns the kind of a backend as the tags of the document's fields have it.
func (r *Registry) kindOf(backend string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch r.backends[backend] {
	case inMemory:
		return "memory"
	case inBytes, ofBytes:
		return "bytes"
	case ofEntries:
		return "store"
	default:
		return ""
	}
}

func (r *Registry) isRegistered(backend string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k := r.backends[backend]
	return k == ofBytes || k == ofEntries || k == inMemory && len(r.rooms) > 0
}

// isBuiltInEviction reports whether an eviction is Terrace's own.
func (r *Registry) isBuiltInEviction(name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.evictions[name]
}

func (r *Registry) policy(name string) PolicyFunc {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.policies[name]
}
