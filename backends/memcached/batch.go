package memcached

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/backends/internal/failure"
	"github.com/terracecache/terrace/backends/internal/gather"
)

const (
	// batchKeys is how many keys one get asks for.
	batchKeys = 500

	// batchWriters is how many writes of one batch go to a server at a time: gomemcache
	// sends one, and waits for its answer.
	batchWriters = 16
)

// batch is keys by the servers that they are on.
type batch struct {
	itemKeys []string
	of       map[*server][]int // the last place of each key
	earlier  []int             // the one before of the same key; -1: none
}

func (s *Store) newBatch(keys []string) *batch {
	b := &batch{itemKeys: make([]string, len(keys)), of: make(map[*server][]int), earlier: make([]int, len(keys))}
	last := make(map[string]int, len(keys))
	for i, key := range keys {
		b.itemKeys[i], _ = s.itemKey(key)
		at, again := last[b.itemKeys[i]]
		if b.earlier[i] = -1; again {
			b.earlier[i] = at
		}
		last[b.itemKeys[i]] = i
	}
	for i, itemKey := range b.itemKeys {
		if last[itemKey] == i {
			sv := s.of(itemKey)
			b.of[sv] = append(b.of[sv], i)
		}
	}
	return b
}

// each does something for the places of each server, for all servers at once: none waits for
// another.
func (b *batch) each(do func(sv *server, places []int)) {
	var servers sync.WaitGroup
	for sv, places := range b.of {
		servers.Go(func() { do(sv, places) })
	}
	servers.Wait()
}

// GetMany implements [tier.BytesBatcher]. What other programs wrote counts as
// nothing. With an error it has what the other servers answered: once one cannot be reached the
// rest of its keys is left out.
func (s *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	b := s.newBatch(keys)
	var (
		mu     sync.Mutex
		failed failure.Set
	)
	b.each(func(sv *server, places []int) {
		for chunk := range slices.Chunk(places, batchKeys) {
			asked := make([]string, len(chunk))
			for i, place := range chunk {
				asked[i] = b.itemKeys[place]
			}
			answers, err := callBy(ctx, s, sv, sv.readGate, "get many", func() ([]gather.Answer[item], error) {
				answers := make([]gather.Answer[item], len(asked))
				return answers, sv.read(ctx, asked, answers)
			})
			for i, answer := range answers {
				if answer.Value.value != nil {
					s.putValue(values, b, chunk[i], answer.Value, keys[chunk[i]])
				}
			}
			mu.Lock()
			failed.Add(err)
			mu.Unlock()
			if ctx.Err() != nil || s.closed.Load() || sv.isDown(err) {
				return
			}
		}
	})
	return values, failed.Join()
}

// isDown reports whether an error of a batch is that of all that the server has of it. Of
// another's client the server is not known, and so may be several.
func (sv *server) isDown(err error) bool { return sv.apart == nil && !isAnswer(err) }

// putValue puts an item's value at all places of its key. Each is its caller's.
func (s *Store) putValue(values [][]byte, b *batch, place int, held item, key string) {
	value, ours := s.valueOf(held, key)
	if !ours {
		return
	}
	values[place] = value
	for place = b.earlier[place]; place >= 0; place = b.earlier[place] {
		values[place] = bytes.Clone(value)
	}
}

// SetMany implements [tier.BytesBatcher]. Once a server cannot be reached the rest of
// its keys is left out.
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
	var (
		mu     sync.Mutex
		failed failure.Set
	)
	s.newBatch(keys).each(func(sv *server, places []int) {
		var next atomic.Int64
		var down atomic.Bool
		work := func() {
			for !down.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(places) {
					return
				}
				err := write(places[i])
				if err == nil {
					continue
				}
				mu.Lock()
				failed.Add(err)
				mu.Unlock()
				if sv.isDown(err) {
					down.Store(true)
				}
				if ctx.Err() != nil || s.closed.Load() {
					return
				}
			}
		}
		var workers sync.WaitGroup
		for range min(len(places), batchWriters, s.options.MaxConnections) {
			workers.Go(work)
		}
		workers.Wait()
	})
	return failed.Join()
}
