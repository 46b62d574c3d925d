package main

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/terracecache/terrace/coordinator"
)

func TestEachContestantHitsWithTheRightValue(t *testing.T) {
	for _, c := range contestants {
		t.Run(c.name, func(t *testing.T) { wantHits(t, c, textKey, textPayload) })
	}
	for _, c := range intContestants {
		t.Run(c.name, func(t *testing.T) { wantHits(t, c, intKey, intPayload) })
	}
	for _, c := range []contestant[string]{promoting("promote-sieve", newSieve[string]), promoting("promote-lru", newLRU[string])} {
		t.Run(c.name, func(t *testing.T) { wantHits(t, c, textKey, textPayload) })
	}
}

func wantHits[K comparable](t *testing.T, c contestant[K], key func(seed, i uint64) K, value func(K) *payload) {
	const n = 2_000
	keys := newKeys(key, n+1)
	there, other := keys[:n], keys[n]
	f, err := openFilled(c, setup[K]{capacity: roomFor(n), load: value, address: testServer(t, c.server)}, there)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, key := range there {
		if got := f.get(key); got == nil || *got != *value(key) {
			t.Fatalf("key %v: got %v, want %v", key, got, value(key))
		}
	}
	if n := f.loaded.Load(); n != 0 {
		t.Errorf("%d of the hits were loads", n)
	}
	switch got := f.get(other); {
	case c.loads && (got == nil || *got != *value(other) || f.loaded.Load() != 1):
		t.Errorf("a miss: got %v after %d loads, want the value after one", got, f.loaded.Load())
	case !c.loads && got != nil:
		t.Errorf("a miss: got %v, want nothing", got)
	}
	if c.readOnly {
		return
	}
	f.set(there[0], value(other))
	if got := f.get(there[0]); got == nil || *got != *value(other) {
		t.Errorf("after a write: got %v, want %v", got, value(other))
	}
}

func TestAStampedeIsOneLoad(t *testing.T) {
	p := testPeers(t) // which warns of any other number
	for _, c := range contestants {
		if !c.loads {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they sleep
			s, err := stampedeSubject(p, c, 100).measure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s.ns < float64(stampedeLoad) {
				t.Errorf("it took %v ns, which is less than the load", s.ns)
			}
		})
	}
}

func TestEachContestantHoldsAllEntries(t *testing.T) {
	p := testPeers(t) // which warns of those that do not
	for _, b := range memory(p) {
		for _, s := range b.subjects {
			t.Run(s.name, func(t *testing.T) {
				got, err := s.measure(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got.heap < 80 {
					t.Errorf("an entry takes %v bytes, which is less than its key and its value", got.heap)
				}
			})
		}
	}
}

func TestEachClientAnswersRight(t *testing.T) {
	address := map[serverKind]string{redisServer: testServer(t, redisServer), memcachedServer: testServer(t, memcachedServer)}
	for i, c := range remoteContestants {
		t.Run(c.name, func(t *testing.T) {
			opened, err := c.open(remoteSetup{address: address[c.server], goroutines: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.close()
			key := textKey(keySeed, uint64(i))
			for _, value := range [][]byte{bytes.Repeat([]byte("v"), 100), {0, 1, 2}} {
				if err := opened.set(request, key, value); err != nil {
					t.Fatal(err)
				}
				if got, err := opened.get(request, key); err != nil || !bytes.Equal(got, value) {
					t.Errorf("got %q, %v; want %q", got, err, value)
				}
			}
			if got, err := opened.get(request, "missing"); !isMiss(err) {
				t.Errorf("a key that is not there: got %q, %v", got, err)
			}
		})
	}
	for i, c := range batchContestants {
		t.Run(c.name, func(t *testing.T) {
			opened, err := c.open(remoteSetup{address: address[c.server], goroutines: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.close()
			keys := newKeys(func(seed, j uint64) string { return textKey(seed+uint64(i+1)<<32, j) }, batchSize)
			if err := writeAll(keys[1:], 100, opened.set); err != nil {
				t.Fatal(err)
			}
			if got, err := opened.getMany(request, keys); got != batchSize-1 || err != nil {
				t.Errorf("found %d, %v; want all but one of %d", got, err, batchSize)
			}
		})
	}
}

func isMiss(err error) bool {
	return errors.Is(err, redis.Nil) || rueidis.IsRedisNil(err) || errors.Is(err, memcache.ErrCacheMiss) || errors.Is(err, errMissed) || errors.Is(err, coordinator.ErrMiss)
}

func TestNamesAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for _, b := range newPeers(&settings{}, nil).blocks() {
		for _, s := range b.subjects {
			id := b.group + " " + s.name + " " + b.title()
			if seen[id] {
				t.Errorf("%s is there twice", id)
			}
			seen[id] = true
		}
	}
	if names := groupNames(); len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("a group is there twice: %v", names)
	}
}
