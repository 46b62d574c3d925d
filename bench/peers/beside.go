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
	besideGoroutines = 2       // that read
	stormKeys        = 1 << 15 // that nobody reads
	leastStorm       = 0.1     // seconds; in less its rate tells nothing
)

// beside measures hits of Terrace alone and beside storms on other keys. A row's ratio
// is its throughput by that of the hits alone.
func beside(p *peers) []block {
	b := block{group: "beside", goroutines: besideGoroutines, relate: relateToAlone}
	for _, l1 := range []topTier{{"terrace-sieve", newSieve[string]}, {"terrace-lru", newLRU[string]}} {
		for _, storm := range storms {
			b.subjects = append(b.subjects, besideSubject(p, l1, storm))
		}
	}
	return []block{b}
}

// topTier is an L1 with the name of its rows.
type topTier struct {
	name string
	make func(capacity int) tier.Store[string, *payload]
}

// storm is what goes on beside the reads. It has a rate and does not take what
// processor time it can get: that would be gone for any cache.
type storm struct {
	name  string
	rate  float64 // a second; 0: there is none
	work  func(c *stormy, key string)
	waits bool          // work waits for the origin, so it is done in a goroutine of its own
	load  time.Duration // that the origin takes
	l3    time.Duration // that a third tier takes for a call; 0: there is no such tier
}

// alone is the name of the storm that is none.
const alone = "alone"

var storms = []storm{
	{name: alone},
	{name: "refresh", rate: 3_000, load: 5 * time.Millisecond, work: func(c *stormy, key string) {
		_ = c.cache.Expire(request, key)
		c.get(key) // is served, and begins the refresh
	}},
	{name: "fill", rate: 3_000, waits: true, l3: 5 * time.Millisecond, work: func(c *stormy, key string) {
		_ = c.cache.Delete(request, key)
		c.get(key) // looks into the third tier too, and stores there
	}},
	{name: "delete", rate: 20_000, work: func(c *stormy, key string) {
		_ = c.cache.Delete(request, key)
	}},
}

func besideSubject(p *peers, l1 topTier, storm storm) subject {
	all := sync.OnceValue(func() []string { return newKeys(textKey, p.Keys+stormKeys) })
	drawn := sync.OnceValue(func() [][]string {
		return sequences(all()[:p.Keys], besideGoroutines, p.draws(), zipf(p.Keys, zipfSkew))
	})
	watch := &stopwatch{goroutines: besideGoroutines, seconds: p.Seconds}
	return subject{
		name: l1.name + "-" + storm.name, module: terraceModule,
		measure: func(ctx context.Context) (sample, error) {
			c := &stormy{}
			f, err := openFilled(c.contestant(l1, storm), setup[string]{capacity: roomFor(len(all())), load: textPayload}, all())
			if err != nil {
				return sample{}, err
			}
			defer f.close()
			sequences := drawn()
			calm := storm.rage(c, all()[p.Keys:])
			var missed atomic.Int64
			measured, err := watch.measure(ctx, reads(f.cache, sequences, &missed))
			if reached := calm(); reached < 0.5 && p.Seconds >= leastStorm {
				p.warn("beside: %s-%s: the storm reached %.0f %% of its rate", l1.name, storm.name, 100*reached)
			}
			if n := missed.Load(); n > 0 {
				p.warn("beside: %s-%s: %d reads were no hits", l1.name, storm.name, n)
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
	if s.rate == 0 {
		return func() float64 { return 1 }
	}
	c.raging.Store(true)
	stop := make(chan struct{})
	var working sync.WaitGroup
	var done atomic.Int64
	began := time.Now()
	due := func() int64 { return int64(s.rate * time.Since(began).Seconds()) }
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

// relateToAlone gives each row its throughput by that of the row alone.
func relateToAlone(rows []row) {
	by := make(map[string]float64)
	for _, r := range rows {
		if l1, ok := strings.CutSuffix(r.Name, alone); ok {
			by[l1] = *r.NsPerOp
		}
	}
	for i, r := range rows {
		for l1, ns := range by {
			if strings.HasPrefix(r.Name, l1) {
				rows[i].Ratio = figure(ns / *r.NsPerOp, 3)
			}
		}
	}
}
