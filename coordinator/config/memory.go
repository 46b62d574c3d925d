package config

import (
	"reflect"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/otter"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/tier"
)

// memory makes a store in this process's memory. Which library it is follows from the
// eviction alone.
func (b *builder[K, V]) memory(t *tierSpec) (tier.Store[K, V], error) {
	entries := int(t.Capacity.entries)
	switch eviction := t.eviction(); eviction {
	case "lru":
		return lru.New[K, V](entries), nil
	case "2q":
		return lru.NewWith[K, V](lru.Options{Capacity: entries, Eviction: lru.TwoQueue}), nil
	case "arc":
		return lru.NewWith[K, V](lru.Options{Capacity: entries, Eviction: lru.ARC}), nil
	case "sieve":
		return sieve.New[K, V](entries), nil
	case "tinylfu":
		if t.Capacity.bytes > 0 {
			return ristretto.New(ristretto.Options[K, V]{MaxCost: t.Capacity.bytes, Cost: b.cost(t)}), nil
		}
		return ristretto.New(ristretto.Options[K, V]{MaxCost: t.Capacity.entries, Cost: one[K, V]}), nil
	case "w-tinylfu":
		if t.Capacity.bytes > 0 {
			return otter.New(otter.Options[K, V]{MaxCost: t.Capacity.bytes, Cost: b.cost(t)}), nil
		}
		return otter.New(otter.Options[K, V]{Capacity: entries}), nil
	default:
		b.registry.mu.RLock()
		f, ok := b.registry.rooms[typedName{eviction, reflect.TypeFor[K](), reflect.TypeFor[V]()}].(EvictionFunc[K, V])
		b.registry.mu.RUnlock()
		if !ok {
			return nil, notFor[K, V]("eviction", eviction)
		}
		return safely(eviction, func() (tier.Store[K, V], error) { return f(entries, Params{t.Options}) })
	}
}

// cost returns what an entry counts as in bytes; nil is the store's own estimate.
func (b *builder[K, V]) cost(t *tierSpec) func(K, *tier.Entry[V]) int64 {
	if fixed := t.Cost.n; t.Cost.given {
		return func(K, *tier.Entry[V]) int64 { return fixed }
	}
	return b.code.Cost
}

func one[K comparable, V any](K, *tier.Entry[V]) int64 { return 1 }
