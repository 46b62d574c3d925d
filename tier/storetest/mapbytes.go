package storetest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// MapBytes is the simplest [tier.Bytes] that is right: a client of a map that
// stands for a server. It can do all that a byte store can: batch, conditional
// writes, clear, measure and tracking. It takes its time from [tier.Now], so it works in
// virtual time.
type MapBytes struct {
	server *mapServer
	closed atomic.Bool
	isCut  bool // guarded by the server's mu: its trackings are cut off
}

// mapServer is what the clients of one server share.
type mapServer struct {
	mu     sync.Mutex
	values map[string]mapValue
	tracks map[*mapTracking]struct{}
}

type mapValue struct {
	bytes []byte
	until tier.Instant
}

// NewMapBytes returns a client of a new, empty server.
func NewMapBytes() *MapBytes {
	return &MapBytes{server: &mapServer{values: make(map[string]mapValue)}}
}

// Another returns another client of the same server, as another process would have
// one. Each is closed on its own.
func (m *MapBytes) Another() *MapBytes { return &MapBytes{server: m.server} }

// Punctual implements [tier.Punctual]: no call waits for anything.
func (m *MapBytes) Punctual() bool { return true }

// Forgetful implements [tier.Forgetful].
func (m *MapBytes) Forgetful() bool { return true }

// Get implements [tier.Bytes].
func (m *MapBytes) Get(ctx context.Context, key string) (value []byte, err error) {
	err = m.do(ctx, func(s *mapServer) { value = bytes.Clone(s.get(key)) })
	return value, err
}

// Set implements [tier.Bytes].
func (m *MapBytes) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return m.do(ctx, func(s *mapServer) { s.set(key, value, ttl) })
}

// Delete implements [tier.Bytes].
func (m *MapBytes) Delete(ctx context.Context, key string) error {
	return m.do(ctx, func(s *mapServer) { s.delete(key) })
}

// GetMany implements [tier.BytesBatcher].
func (m *MapBytes) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	err := m.do(ctx, func(s *mapServer) {
		for i, key := range keys {
			values[i] = bytes.Clone(s.get(key))
		}
	})
	return values, err
}

// SetMany implements [tier.BytesBatcher].
func (m *MapBytes) SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
	return m.do(ctx, func(s *mapServer) {
		for i, key := range keys {
			s.set(key, values[i], ttls[i])
		}
	})
}

// DeleteMany implements [tier.BytesBatcher].
func (m *MapBytes) DeleteMany(ctx context.Context, keys []string) error {
	return m.do(ctx, func(s *mapServer) {
		for _, key := range keys {
			s.delete(key)
		}
	})
}

// SetIf implements [tier.BytesSwapper].
func (m *MapBytes) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (stored bool, err error) {
	err = m.do(ctx, func(s *mapServer) {
		held := s.get(key)
		if stored = bytes.Equal(held[:min(len(held), tier.HeadSize)], head); stored {
			s.set(key, value, ttl)
		}
	})
	return stored, err
}

// Clear implements [tier.Clearer]. All clients of a server are one cache.
func (m *MapBytes) Clear(ctx context.Context) error {
	return m.do(ctx, func(s *mapServer) {
		clear(s.values)
		s.tell(tier.TrackHandler[string].ChangedAll)
	})
}

// Keys returns the keys that the server holds, sorted, for tests to look at.
func (m *MapBytes) Keys() []string {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	var keys []string
	for key := range m.server.values {
		if m.server.get(key) != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Usage implements [tier.Measurer].
func (m *MapBytes) Usage() tier.Usage {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	for key := range m.server.values {
		m.server.get(key) // which removes it if its time is over
	}
	return tier.Usage{Entries: int64(len(m.server.values)), MaxEntries: -1, Cost: -1, MaxCost: -1}
}

// Close implements [tier.Bytes]. The server keeps what it holds.
func (m *MapBytes) Close() error {
	m.closed.Store(true)
	m.stopTracks()
	return nil
}

func (m *MapBytes) do(ctx context.Context, f func(*mapServer)) error {
	if m.closed.Load() {
		return tier.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	f(m.server)
	return nil
}

// get is called with mu held; what it returns must not be changed.
func (s *mapServer) get(key string) []byte {
	v, ok := s.values[key]
	if ok && v.until <= tier.Now() {
		s.delete(key)
		return nil
	}
	return v.bytes
}

// set is called with mu held.
func (s *mapServer) set(key string, value []byte, ttl time.Duration) {
	if ttl <= 0 {
		s.delete(key)
		return
	}
	s.values[key] = mapValue{bytes: append([]byte{}, value...), until: tier.Now().Add(ttl)}
	s.changed(key)
}

// delete is called with mu held.
func (s *mapServer) delete(key string) {
	if _, there := s.values[key]; there {
		delete(s.values, key)
		s.changed(key)
	}
}
