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

// storm is what goes on beside the reads. It is bounded by a pace and not by the
// processor, since the time that the storm itself takes is gone for any cache.
type storm struct {
	name    string
	workers int
	every   time.Duration // how often each of them works
	work    func(c *stormy, keys []string, n int)
	l3      time.Duration // that a third tier takes for a call; 0: there is none
	load    time.Duration // that the origin takes for the storm's keys
}

// alone is the name of the storm that is none.
const alone = "alone"

var storms = []storm{
	{name: alone},
	// Each worker has its key refreshed: 6,400 refreshes a second.
	{
		name: "refresh", workers: 32, every: 5 * time.Millisecond, load: 4 * time.Millisecond,
		work: func(c *stormy, keys []string, _ int) {
			_ = c.cache.Expire(request, keys[0])
			c.get(keys[0])
		},
	},
	// Each worker loads a new key, which is looked for and stored in the third tier
	// too: 6,400 fills a second.
	{
		name: "fill", workers: 64, every: 10 * time.Millisecond, l3: 5 * time.Millisecond,
		work: func(c *stormy, keys []string, n int) {
			_ = c.cache.Delete(request, keys[n%len(keys)])
			c.get(keys[n%len(keys)])
		},
	},
	// 20,000 removals a second, of keys that are there until all have gone once.
	{
		name: "delete", workers: 1, every: time.Millisecond,
		work: func(c *stormy, keys []string, n int) {
			for i := range 20 {
				_ = c.cache.Delete(request, keys[(20*n+i)%len(keys)])
			}
		},
	},
}

func besideSubject(p *peers, l1 topTier, storm storm) subject {
	all := sync.OnceValue(func() []string { return newKeys(textKey, p.Keys+stormKeys) })
	drawn := sync.OnceValue(func() [][]string {
		return sequences(all()[:p.Keys], besideGoroutines, drawn, zipf(p.Keys, zipfSkew))
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
			if pace := calm(); pace < 0.5 {
				p.warn("beside: %s-%s: the storm reached %.0f %% of its pace", l1.name, storm.name, 100*pace)
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

// rage begins the storm and returns what ends it, and tells how much of its pace it
// reached.
func (s storm) rage(c *stormy, keys []string) (calm func() (pace float64)) {
	c.raging.Store(true)
	stop := make(chan struct{})
	var working sync.WaitGroup
	var works atomic.Int64
	for worker := range s.workers {
		own := keys[worker*len(keys)/s.workers : (worker+1)*len(keys)/s.workers]
		working.Go(func() {
			ticker := time.NewTicker(s.every)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-ticker.C:
					s.work(c, own, n)
					works.Add(1)
				case <-stop:
					return
				}
			}
		})
	}
	began := time.Now()
	return func() float64 {
		wanted := float64(s.workers) * float64(time.Since(began)) / float64(max(s.every, 1))
		close(stop)
		working.Wait()
		if wanted < 1 {
			return 1
		}
		return float64(works.Load()) / wanted
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
