package memcached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/failure"
	"github.com/terracecache/terrace/tier"
)

const (
	// batchKeys is how many keys one get asks for.
	batchKeys = 500

	// batchWriters is how many writes of one batch go at a time: gomemcache sends one,
	// and waits for its answer.
	batchWriters = 16
)

// GetMany implements [tier.BytesBatcher]. What other programs wrote counts as
// nothing.
func (s *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	var failed failure.Set
	for start := 0; start < len(keys); start += batchKeys {
		chunk := append([]string(nil), keys[start:min(start+batchKeys, len(keys))]...)
		got, err := call(ctx, s, "get many", func() ([][]byte, error) { return s.getMany(ctx, chunk) })
		copy(values[start:], got)
		failed.Add(err)
		if ctx.Err() != nil || s.gate.Closed() {
			break
		}
	}
	return values, failed.Join()
}

func (s *Store) getMany(ctx context.Context, keys []string) ([][]byte, error) {
	itemKeys := make([]string, len(keys))
	seen := make(map[string]bool, len(keys))
	var ask []string
	for i, key := range keys {
		itemKeys[i], _ = s.itemKey(key)
		if !seen[itemKeys[i]] {
			seen[itemKeys[i]] = true
			ask = append(ask, itemKeys[i])
		}
	}
	var items map[string]*memcache.Item
	err := s.redo(ctx, func() (err error) {
		items, err = s.client.GetMulti(ask) // with an error: what the other servers have
		return err
	})
	values := make([][]byte, len(keys))
	for i, key := range keys {
		item := items[itemKeys[i]]
		if item == nil {
			continue
		}
		if value, ours := s.valueOf(item, key); ours {
			values[i] = value
		}
		if len(ask) < len(keys) { // some key repeats, and each value is its caller's
			values[i] = bytes.Clone(values[i])
		}
	}
	return values, err
}

// SetMany implements [tier.BytesBatcher]. Once a server of [Options.Servers] cannot
// be reached the rest of its keys is left out.
func (s *Store) SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
	if len(values) != len(keys) || len(ttls) != len(keys) {
		return fmt.Errorf("terrace/memcached: set many: %d keys, %d values and %d ttls", len(keys), len(values), len(ttls))
	}
	return s.each(ctx, keys, func(i int) error { return s.Set(ctx, keys[i], values[i], ttls[i]) })
}

// DeleteMany implements [tier.BytesBatcher], as SetMany does.
func (s *Store) DeleteMany(ctx context.Context, keys []string) error {
	return s.each(ctx, keys, func(i int) error { return s.Delete(ctx, keys[i]) })
}

// each writes, for each key, its last index, some at a time.
func (s *Store) each(ctx context.Context, keys []string, write func(i int) error) error {
	last := make(map[string]int, len(keys))
	for i, key := range keys {
		last[key] = i
	}
	var (
		next   atomic.Int64
		mu     sync.Mutex
		failed failure.Set
		down   = make(map[net.Addr]bool)
	)
	isDown := func(server net.Addr) bool {
		mu.Lock()
		defer mu.Unlock()
		return down[server]
	}
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(keys) {
				return
			}
			server := s.serverOf(keys[i])
			if last[keys[i]] != i || isDown(server) {
				continue
			}
			err := write(i)
			if err == nil {
				continue
			}
			mu.Lock()
			failed.Add(err)
			if server != nil && !isReply(err) && !errors.Is(err, tier.ErrTooLarge) {
				down[server] = true
			}
			mu.Unlock()
			if ctx.Err() != nil || s.gate.Closed() {
				return
			}
		}
	}
	var workers sync.WaitGroup
	for range min(len(keys), batchWriters, s.options.MaxConnections) {
		workers.Go(work)
	}
	workers.Wait()
	return failed.Join()
}

// serverOf returns nil where another's client knows the servers.
func (s *Store) serverOf(key string) net.Addr {
	if s.servers == nil {
		return nil
	}
	itemKey, _ := s.itemKey(key)
	server, err := s.servers.PickServer(itemKey)
	if err != nil {
		return nil
	}
	return server
}
