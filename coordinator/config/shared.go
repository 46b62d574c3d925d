package config

import (
	"reflect"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// shared makes a store of a backend that moves bytes, or notes why it cannot.
func (b *builder[K, V]) shared(t *tierSpec, path string) tier.Store[K, V] {
	c, err := b.codec(t)
	if err != nil {
		b.broken(t.at, "codec", path, err.Error())
	}
	o := tier.EncodeOptions[K]{
		Key:         b.code.Key,
		ParseKey:    b.code.ParseKey,
		Schema:      b.code.Schema,
		Compression: t.compression(),
	}
	if keys := t.Encryption.all(); len(keys) > 0 {
		e, err := codec.NewEncryption(keys...)
		if err != nil {
			b.broken(t.at, "encryption", path, err.Error())
			return nil
		}
		o.Encryption = e
	}
	if err != nil {
		return nil
	}
	bytes, field, err := b.bytes(t)
	if err == nil && isNil(bytes) {
		b.broken(t.at, "backend", path, "made no store")
		return nil
	}
	if err != nil {
		b.broken(t.at, field, path, err.Error())
		return nil
	}
	return tier.EncodeWith(bytes, c, o)
}

// bytes makes the byte store, or tells which field is in the way.
func (b *builder[K, V]) bytes(t *tierSpec) (s tier.Bytes, field string, err error) {
	switch t.Backend {
	case "redis":
		s, err = redis.Open(t.URL.reveal(), redis.Options{
			Prefix:       string(t.Prefix),
			MaxCalls:     int(t.MaxCalls.n),
			Gather:       int(t.Gather.n),
			MaxValueSize: int(t.MaxValueSize.n),
		})
		return s, "url", err
	case "memcached":
		servers := make([]string, len(t.Servers))
		for i, server := range t.Servers {
			servers[i] = string(server)
		}
		s, err = memcached.Open(memcached.Options{
			Servers:        servers,
			Prefix:         string(t.Prefix),
			MaxConnections: int(t.MaxConnections.n),
			Gather:         int(t.Gather.n),
			MaxValueSize:   int(t.MaxValueSize.n),
			Timeout:        t.Timeout.Duration,
		})
		return s, "servers", err
	default:
		b.registry.mu.RLock()
		f := b.registry.bytes[string(t.Backend)]
		b.registry.mu.RUnlock()
		s, err = safely(string(t.Backend), func() (tier.Bytes, error) { return f(Params{t.Options}) })
		return s, "backend", err
	}
}

func (t *tierSpec) compression() codec.Compression {
	o := codec.Compression{MinSize: int(max(t.MinSize.n, t.Compression.MinSize.n))}
	switch t.Compression.Algorithm {
	case "s2":
		o.Algorithm = codec.S2
	case "zstd":
		o.Algorithm = codec.Zstd
	}
	return o
}

// codec returns the codec for the values' type.
func (b *builder[K, V]) codec(t *tierSpec) (tier.Codec[V], error) {
	name := string(t.Codec)
	switch name {
	case "", "json":
		return codec.JSON[V](), encodable(reflect.TypeFor[V](), "json")
	case "msgpack":
		return codec.MsgPack[V](), encodable(reflect.TypeFor[V](), name)
	case "gob":
		return codec.Gob[V](), encodable(reflect.TypeFor[V](), name)
	case "raw":
		return rawFor[V]()
	}
	b.registry.mu.RLock()
	defer b.registry.mu.RUnlock()
	if c, ok := b.registry.typed[typedName{name, nil, reflect.TypeFor[V]()}].(tier.Codec[V]); ok {
		return c, nil
	}
	if c := b.registry.codecs[name]; c != nil {
		return anyCodec[V]{name, c}, nil
	}
	return nil, notFor[K, V]("codec", name)
}

// anyCodec makes a registered codec of any type one of V.
type anyCodec[V any] struct {
	name string
	c    AnyCodec
}

func (a anyCodec[V]) Name() string { return a.name }

func (a anyCodec[V]) Append(dst []byte, value V) ([]byte, error) { return a.c.Append(dst, value) }

func (a anyCodec[V]) Decode(data []byte) (value V, err error) {
	err = a.c.Decode(data, &value)
	return value, err
}
