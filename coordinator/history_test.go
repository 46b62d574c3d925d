package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// TestHistory runs many clients at random over a few keys, tiers that stall and
// fail at random, and an origin that stalls and fails, and checks each read: one that
// began after a write of its process had returned has that write's version or a later
// one (W1, W2), none is served past its usable time (T3), and the counts add up (Z3).
func TestHistory(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	for seed := range uint64(seeds) {
		virtual(t, fmt.Sprintf("seed %d", seed), func(t *testing.T) { history(t, seed) })
	}
}

type versioned struct {
	Key     string
	Version int
}

// ledger knows what the origin had when, and what readers may no longer see.
type ledger struct {
	mu     sync.Mutex
	source map[string]int // the origin's version
	floor  map[string]int // the least version that a read that begins now may see

	writers map[string]chan struct{} // one token a key
}

func newLedger(keys int) *ledger {
	l := &ledger{source: make(map[string]int), floor: make(map[string]int), writers: make(map[string]chan struct{})}
	for k := range keys {
		l.writers[fmt.Sprintf("k%d", k)] = make(chan struct{}, 1)
	}
	return l
}

// writer runs a write of a key alone. It waits on a channel, which stops virtual
// time less than a mutex would.
func (l *ledger) writer(key string, write func()) {
	l.writers[key] <- struct{}{}
	defer func() { <-l.writers[key] }()
	write()
}

func (l *ledger) read(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source[key]
}

// bump gives the origin a new version.
func (l *ledger) bump(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source[key]++
	return l.source[key]
}

// returned notes that a write of the version, or an invalidation of all before it,
// has returned.
func (l *ledger) returned(key string, version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor[key] = max(l.floor[key], version)
}

func (l *ledger) least(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.floor[key]
}

func history(t *testing.T, seed uint64) {
	const (
		keys    = 4
		clients = 8
		steps   = 150
	)
	led := newLedger(keys)
	var rmu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 1))
	random := func(n int) int {
		rmu.Lock()
		defer rmu.Unlock()
		return rng.IntN(n)
	}
	errDown := errors.New("down")
	fault := func(ctx context.Context, _, _ string) error {
		if random(10) == 0 {
			return errDown
		}
		return sleep(ctx, time.Duration(random(40))*time.Millisecond)
	}
	lifetime := policy.Lifetime{TTL: 300 * time.Millisecond, Jitter: 0.2, Absent: 50 * time.Millisecond}
	strategies := []policy.Strategy{policy.Fixed{}, policy.XFetch{Beta: 2}}
	if seed%2 == 0 {
		lifetime.StaleWhileRevalidate, lifetime.StaleIfError = 200*time.Millisecond, 500*time.Millisecond
		strategies = append(strategies, policy.StaleWhileRevalidate{})
	}
	plain := func(name string) tier.Tier[string, versioned] {
		return tier.Tier[string, versioned]{Name: name, Store: hook(storetest.NewMap[string, versioned](), fault), Timeout: 30 * time.Millisecond}
	}
	swapping := func(name string) tier.Tier[string, versioned] {
		return tier.Tier[string, versioned]{Name: name, Timeout: 30 * time.Millisecond,
			Store: hookSwapper(tier.Encode[string, versioned](storetest.NewMapBytes(), codec.JSON[versioned]()), fault)}
	}
	tiny := tier.Tier[string, versioned]{Name: "tiny", Store: lru.New[string, versioned](2), TTL: 100 * time.Millisecond}
	var tiers []tier.Tier[string, versioned]
	switch seed % 5 {
	case 0:
		tiers = []tier.Tier[string, versioned]{tiny, memory[versioned]("l2"), swapping("l3")}
	case 1:
		tiers = []tier.Tier[string, versioned]{tiny, plain("l2")}
	case 2:
		tiers = []tier.Tier[string, versioned]{tiny, plain("l2"), swapping("l3"), plain("l4")}
	case 3:
		tiers = []tier.Tier[string, versioned]{swapping("l1")}
	case 4:
		tiers = []tier.Tier[string, versioned]{plain("l1"), tiny, swapping("l3")}
	}
	c := newCache(t, coordinator.Options[string, versioned]{
		Tiers:    tiers,
		Lifetime: lifetime,
		Limits:   coordinator.Limits{LoadTimeout: 80 * time.Millisecond, Recovery: 3, Flights: 6, Background: 2},
		Backoff:  policy.Backoff{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond},
		Load: func(ctx context.Context, key string) (versioned, error) {
			v := led.read(key)
			d := time.Duration(random(60)) * time.Millisecond
			switch random(12) {
			case 0:
				return versioned{}, errDown
			case 1:
				time.Sleep(d)
				panic("loader")
			case 2:
				time.Sleep(100 * time.Millisecond) // does not heed its context
			}
			return versioned{key, v}, sleep(ctx, d)
		},
	})
	var requests int
	many(clients, func(i int) {
		for range steps {
			key := fmt.Sprintf("k%d", random(keys))
			opCtx, cancel := context.WithTimeout(ctx, time.Duration(1+random(200))*time.Millisecond)
			switch op := random(20); {
			case op < 14:
				least := led.least(key)
				r, err := c.Lookup(opCtx, key)
				rmu.Lock()
				requests++
				rmu.Unlock()
				if err != nil {
					break
				}
				if r.Value.Key != key {
					t.Errorf("Lookup(%q) answered with the value of %q", key, r.Value.Key)
				}
				if r.Value.Version < least {
					t.Errorf("Lookup(%q): version %d from %q, though a write of %d had returned", key, r.Value.Version, r.Tier, least)
				}
				// TTL with jitter, the longest window, and a load that took its limit.
				if limit := 360*time.Millisecond + 500*time.Millisecond; r.Tier != "" && r.Age > limit {
					t.Errorf("Lookup(%q): age %v from %q, limit %v", key, r.Age, r.Tier, limit)
				}
			case op < 16:
				led.writer(key, func() {
					v := led.bump(key)
					if random(4) == 0 {
						_ = c.Expire(opCtx, key)
					}
					noteWrite(led, key, v, c.Delete(opCtx, key))
				})
			case op < 18:
				// Writers of one key go one after another, or the last of two Sets
				// would not have the highest version.
				led.writer(key, func() {
					v := led.bump(key)
					noteWrite(led, key, v, c.Set(opCtx, key, versioned{key, v}))
				})
			case op < 19:
				if random(10) > 0 {
					break
				}
				before := make(map[string]int)
				for k := range keys {
					key := fmt.Sprintf("k%d", k)
					before[key] = led.read(key)
				}
				var w *coordinator.WriteError
				if err := c.Clear(opCtx); err == nil || errors.As(err, &w) {
					for key, v := range before {
						led.returned(key, v)
					}
				}
			default:
				_ = c.SetPolicy(strategies[random(len(strategies))])
			}
			cancel()
			time.Sleep(time.Duration(random(20)) * time.Millisecond)
		}
	})
	synctest.Wait()
	s := c.Stats()
	if got := int(s.Requests()); got != requests {
		t.Errorf("counts: got %d requests, want %d: %+v", got, requests, s)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	s = c.Stats()
	if s.Keys != 0 || s.Flights != 0 {
		t.Errorf("at rest: %d keys, %d flights", s.Keys, s.Flights)
	}
}

// noteWrite notes a write that has been made, in all tiers or in those that could be
// reached.
func noteWrite(led *ledger, key string, version int, err error) {
	var w *coordinator.WriteError
	if err == nil || errors.As(err, &w) {
		led.returned(key, version)
	}
}
