package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

const (
	stormRate  = 10_000  // operations a second
	stormKeys  = 1 << 15 // that nobody reads
	leastStorm = 0.1     // seconds; in less its rate tells nothing
)

// beside measures hits of Terrace alone, and beside storms on other keys. A storm takes
// of the processor what its work takes, which would be gone for any cache; so each is
// measured twice: in the cache that is read, and apart from it, in another that is made
// alike. What the hits lose in the one beside the other is what they lose by sharing a
// cache with the storm. With one reader there is a core for the storm, with two there
// is none.
func beside(p *peers) []block {
	var blocks []block
	for _, goroutines := range []int{1, 2} {
		b := block{group: "beside", goroutines: goroutines, relate: relateStorms}
		for _, l1 := range []topTier{{"terrace-sieve", newSieve[string]}, {"terrace-lru", newLRU[string]}} {
			b.subjects = append(b.subjects, besideSubject(p, goroutines, l1, storm{name: alone}))
			for _, storm := range storms {
				b.subjects = append(b.subjects, besideSubject(p, goroutines, l1, storm))
				storm.apart = true
				b.subjects = append(b.subjects, besideSubject(p, goroutines, l1, storm))
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// topTier is an L1 with the name of its rows.
type topTier struct {
	name string
	make func(capacity int) tier.Store[string, *payload]
}

// storm is what goes on beside the reads. It has a rate and does not take what
// processor time it can get.
type storm struct {
	name  string
	work  func(c *stormy, key string) // nil: there is none
	waits bool                        // work waits for the origin, so it is done in a goroutine of its own
	load  time.Duration               // that the origin takes
	l3    time.Duration               // that a third tier takes for a call; 0: there is no such tier
	apart bool                        // it is in another cache than the reads
}

// Parts of rows' names: that of the row without a storm, and the end of those whose
// storm is in another cache.
const (
	alone = "alone"
	apart = "-apart"
)

var storms = []storm{
	{name: "refresh", load: 5 * time.Millisecond, work: func(c *stormy, key string) {
		_ = c.cache.Expire(request, key)
		c.get(key) // is served, and begins the refresh
	}},
	{name: "fill", waits: true, l3: 5 * time.Millisecond, work: func(c *stormy, key string) {
		_ = c.cache.Delete(request, key)
		c.get(key) // looks into the third tier too, and stores there
	}},
	{name: "delete", work: func(c *stormy, key string) {
		_ = c.cache.Delete(request, key)
	}},
}

func (s storm) rowName(l1 topTier) string {
	name := l1.name + "-" + s.name
	if s.apart {
		name += apart
	}
	return name
}

func besideSubject(p *peers, goroutines int, l1 topTier, storm storm) subject {
	all := sync.OnceValue(func() []string { return newKeys(textKey, p.Keys+stormKeys) })
	drawn := sync.OnceValue(func() [][]string {
		return sequences(all()[:p.Keys], goroutines, p.draws(), zipf(p.Keys, zipfSkew))
	})
	watch := &stopwatch{goroutines: goroutines, seconds: p.Seconds}
	name := storm.rowName(l1)
	return subject{
		name: name, module: terraceModule,
		measure: func(ctx context.Context) (sample, error) {
			open := func(keys []string) (*stormy, filled[string], error) {
				c := &stormy{}
				f, err := openFilled(c.contestant(l1, storm), setup[string]{capacity: roomFor(len(all())), load: textPayload}, keys)
				return c, f, err
			}
			c, f, err := open(all())
			if err != nil {
				return sample{}, err
			}
			defer f.close()
			if storm.apart {
				other, f, err := open(all()[p.Keys:])
				if err != nil {
					return sample{}, err
				}
				defer f.close()
				c = other
			}
			sequences := drawn()
			calm := storm.rage(c, all()[p.Keys:])
			var missed atomic.Int64
			measured, err := watch.measure(ctx, reads(f.cache, sequences, &missed))
			if reached := calm(); reached < 0.5 && p.Seconds >= leastStorm {
				p.warn("beside: %s: the storm reached %.0f %% of its rate", name, 100*reached)
			}
			if n := missed.Load(); n > 0 {
				p.warn("beside: %s: %d reads were no hits", name, n)
			}
			return measured, err
		},
	}
}

// stormy is a Terrace whose origin and third tier are slow while it storms.
type stormy struct {
	*terraceCache[string]
	raging atomic.Bool
}

func (c *stormy) contestant(l1 topTier, storm storm) contestant[string] {
	return contestant[string]{name: l1.name, loads: true, open: func(s setup[string]) (cache[string], error) {
		tiers := []tier.Tier[string, *payload]{
			{Name: "l1", Store: l1.make(s.capacity)},
			{Name: "l2", Store: newL2[string](s.capacity)},
		}
		if storm.l3 > 0 {
			tiers = append(tiers, tier.Tier[string, *payload]{Name: "l3", Store: &slowStore{lru.New[string, *payload](s.capacity), c, storm.l3}})
		}
		cache, err := coordinator.New(coordinator.Options[string, *payload]{
			Tiers:    tiers,
			Lifetime: policy.Lifetime{TTL: ttl, Jitter: 0.1, StaleWhileRevalidate: ttl},
			Refresh:  policy.XFetch{},
			Logger:   slog.New(slog.DiscardHandler), // a refresh too many is left out, and logged
			Load: func(_ context.Context, key string) (*payload, error) {
				c.wait(storm.load)
				return s.load(key), nil
			},
		})
		c.terraceCache = &terraceCache[string]{cache}
		return c, err
	}}
}

func (c *stormy) wait(d time.Duration) {
	if d > 0 && c.raging.Load() {
		time.Sleep(d)
	}
}

// rage begins the storm over the keys and returns what ends it, and tells how much of
// its rate it reached.
func (s storm) rage(c *stormy, keys []string) (calm func() (reached float64)) {
	if s.work == nil {
		return func() float64 { return 1 }
	}
	c.raging.Store(true)
	stop := make(chan struct{})
	var working sync.WaitGroup
	var done atomic.Int64
	began := time.Now()
	due := func() int64 { return int64(stormRate * time.Since(began).Seconds()) }
	work := func(i int64) {
		s.work(c, keys[i%int64(len(keys))])
		done.Add(1)
	}
	working.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for i := int64(0); ; {
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
			// All that is due: where readers hold the processors a tick comes late.
			for ; i < due(); i++ {
				if i := i; s.waits {
					working.Go(func() { work(i) })
				} else {
					work(i)
				}
			}
		}
	})
	return func() float64 {
		wanted, got := due(), done.Load()
		close(stop)
		working.Wait()
		return float64(got) / float64(max(wanted, 1))
	}
}

// slowStore is a tier that is not in memory, as far as Terrace can tell.
type slowStore struct {
	store  tier.Store[string, *payload]
	stormy *stormy
	takes  time.Duration
}

func (s *slowStore) Get(ctx context.Context, key string) (*tier.Entry[*payload], error) {
	s.stormy.wait(s.takes)
	return s.store.Get(ctx, key)
}

func (s *slowStore) Set(ctx context.Context, key string, e *tier.Entry[*payload], ttl time.Duration) error {
	s.stormy.wait(s.takes)
	return s.store.Set(ctx, key, e, ttl)
}

func (s *slowStore) Delete(ctx context.Context, key string) error { return s.store.Delete(ctx, key) }
func (s *slowStore) Close() error                                 { return s.store.Close() }

// relateStorms gives each row its throughput by that of the row alone, and each whose
// storm is in the same cache that by the one whose storm is apart.
func relateStorms(rows []row) {
	by := make(map[string]float64)
	for _, r := range rows {
		by[r.Name] = *r.NsPerOp
	}
	for i, r := range rows {
		l1 := r.Name
		for _, other := range rows {
			if own, ok := strings.CutSuffix(other.Name, alone); ok && strings.HasPrefix(r.Name, own) {
				l1 = own
			}
		}
		if ns, ok := by[l1+alone]; ok {
			rows[i].Ratio = figure(ns / *r.NsPerOp, 3)
		}
		if ns, ok := by[r.Name+apart]; ok {
			rows[i].RatioApart = figure(ns / *r.NsPerOp, 3)
		}
	}
}
