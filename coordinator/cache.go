package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// Cache chains tiers. All methods may be called concurrently.
type Cache[K comparable, V any] struct {
	name   string
	levels []*level[K, V]
	local  int // how many tiers at the top answer from memory

	// The tiers that can write on condition; -1 where there are none.
	firstSwap, lastSwap int

	lessor  *lessor[K, V] // nil without leases
	load    loading[K, V]
	backoff policy.Backoff
	log     *eventLog

	settings   atomic.Pointer[settings[K, V]]
	settingsMu sync.Mutex // serializes changes of settings

	table      *table[K, V]
	flights    gate
	loads      gate
	background gate
	cooldowns  *cooldowns[K]
	longest    atomic.Int64 // the longest life that an entry was given, a time.Duration
	counts     *counts
	clock      *clock
	above      *invalidator[K, V] // of the tiers in memory
	bus        *link[K, V]        // nil where there is none
	tracking   *tracking[K, V]    // nil where there is none

	life *life
	base context.Context // ends when Close has drained or given up
	stop context.CancelCauseFunc
}

// New makes a cache of the options. The error names all that is wrong with them.
func New[K comparable, V any](o Options[K, V]) (*Cache[K, V], error) {
	if o.Refresh == nil {
		o.Refresh = policy.Fixed{}
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	limits := o.Limits.withDefaults()
	c := &Cache[K, V]{
		name:       o.name(),
		load:       loading[K, V]{plain: o.Load, entry: o.LoadEntry},
		backoff:    o.Backoff,
		log:        newEventLog(o.Logger, o.name()),
		flights:    gate{max: limits.Flights},
		loads:      gate{max: limits.mostLoads()},
		background: gate{max: limits.Background},
		cooldowns:  newCooldowns[K](o.Backoff, limits.LoadTimeout),
		counts:     newCounts(len(o.Tiers)),
		life:       newLife(),
		firstSwap:  -1,
		lastSwap:   -1,
	}
	c.table = newTable(c)
	c.base, c.stop = context.WithCancelCause(context.Background())
	for _, t := range o.Tiers {
		l := newLevel(t, limits.Recovery)
		if s, ok := l.store.(*onTime[K, V]); ok {
			s.late = func(err error) { c.log.warn("a call that was left behind has failed since", l.name, err) }
		}
		if l.local && c.local == len(c.levels) {
			c.local++
		}
		if l.swap != nil {
			if c.lastSwap < 0 {
				c.firstSwap = len(c.levels)
			}
			c.lastSwap = len(c.levels)
		}
		c.levels = append(c.levels, l)
	}
	var err error
	if c.lessor, err = newLessor(o.Lease, c.levels); err != nil {
		return nil, fmt.Errorf("terrace: cache %q: %w", o.name(), err)
	}
	c.noteLife(o.Lifetime.Longest())
	c.clock = newClock(c.counts.hitsSince())
	c.settings.Store(settings[K, V]{
		refresh:  o.Refresh,
		lifetime: o.Lifetime,
		limits:   limits,
		longest:  limits.LoadTimeout,
		top:      c.topStore(),
	}.withCalm())
	if err := c.listen(&o); err != nil {
		c.stop(err)
		return nil, err
	}
	return c, nil
}

// listen has the cache told what others write.
func (c *Cache[K, V]) listen(o *Options[K, V]) (err error) {
	b := o.BusOptions.withDefaults(c.name)
	c.above = newInvalidator(c, b.Clamp)
	if o.Track {
		if c.tracking, err = startTracking(c, b.Queue); err != nil {
			c.above.close()
			return err
		}
	}
	if isNil(o.Bus) {
		return nil
	}
	if c.bus, err = newLink(c, o.Bus, b); err == nil {
		err = c.bus.start()
	}
	if err != nil {
		c.tracking.stop()
		c.above.close()
	}
	return err
}

// closeListening ends what listen began.
func (c *Cache[K, V]) closeListening(ctx context.Context) error {
	return errors.Join(
		c.closeWithin(ctx, "the tracking", c.tracking.stop),
		c.bus.close(ctx),
		c.closeWithin(ctx, "a tier in memory", c.above.close),
	)
}

// topStore returns the first tier where a read may ask it on the caller's own
// goroutine and trust the answer, else nil.
func (c *Cache[K, V]) topStore() tier.Store[K, V] {
	top := c.levels[0]
	if !top.local || top.floor.Load() != noFloor || !top.repeats.empty() || top.repeats.forgotten.Load() != nil {
		return nil
	}
	return top.store
}

// retop looks again whether the first tier can be trusted.
func (c *Cache[K, V]) retop() {
	_ = c.change(func(now *settings[K, V]) error {
		now.top = c.topStore()
		return nil
	})
}

// noteLife remembers the longest life that an entry was given: what a tier could
// not be told must be remembered as long.
func (c *Cache[K, V]) noteLife(d time.Duration) {
	for {
		longest := c.longest.Load()
		if int64(d) <= longest || c.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// allLocal reports whether all tiers are in memory.
func (c *Cache[K, V]) allLocal() bool { return c.local == len(c.levels) }

// level is a tier at work.
type level[K comparable, V any] struct {
	name    string
	store   tier.Store[K, V]
	given   tier.Store[K, V]     // store as it was given, for what needs no time limit
	pairs   tier.PairStore[K, V] // the store where it is local and keeps pairs, else nil
	swap    tier.Swapper[K, V]   // nil where the store cannot write on condition
	clear   tier.Clearer         // nil where it cannot clear
	measure tier.Measurer        // nil where it cannot tell
	local   bool
	deaf    bool          // calls of the store are left behind when their contexts end
	byEntry bool          // the store ends entries by their own ends
	forgets bool          // its reads keep nothing of their contexts
	ttl     time.Duration // Forever where there is no bound
	timeout time.Duration

	// floor is the Instant up to which nothing in the tier is trusted: what a
	// Clear that failed left there. Both are Instants.
	floor    atomic.Int64
	floorEnd atomic.Int64 // when all from before the floor must be dead
	breaker  *breaker     // nil where there is none
	// deadlines end the calls of flights.
	deadlines lanes
	repeats   *repeats[K, V]
	counts    levelCounts
}

const noFloor = -1 << 63

func newLevel[K comparable, V any](t tier.Tier[K, V], maxRepeats int) *level[K, V] {
	l := &level[K, V]{
		name:    t.Name,
		store:   t.Store,
		given:   t.Store,
		local:   tier.IsLocal(t.Store),
		byEntry: tier.DoesEndByEntry(t.Store),
		forgets: tier.IsForgetful(t.Store),
		ttl:     t.TTL,
		timeout: t.Timeout,
		repeats: newRepeats[K, V](maxRepeats),
	}
	if l.ttl == 0 {
		l.ttl = tier.Forever
	}
	if l.timeout == 0 {
		l.timeout = tier.DefaultTimeout
	}
	l.deadlines.limit(l.timeout)
	if !l.local && !tier.IsPunctual(t.Store) {
		l.store, l.deaf = newOnTime(t.Store), true
	}
	l.swap, _ = tier.AsSwapper(l.store)
	if l.local && l.swap == nil {
		l.pairs, _ = tier.AsPairStore(l.store)
	}
	l.clear, _ = tier.AsClearer(l.store)
	l.measure, _ = tier.AsMeasurer(t.Store)
	if !l.local {
		l.breaker = newBreaker(t.Breaker, l.repeats.nudge)
	}
	l.floor.Store(noFloor)
	return l
}

// remaining returns how long the level may keep an entry from now on (T1).
func (l *level[K, V]) remaining(e *tier.Entry[V], now tier.Instant) time.Duration {
	return min(l.ttl, e.UsableUntil().Sub(now))
}

// setLocal writes an entry to a level that is local. It is told the life that is left
// if it cannot see that itself (T1).
func (l *level[K, V]) setLocal(ctx context.Context, pair *tier.Pair[K, V]) error {
	ttl := l.ttl
	if !l.byEntry {
		ttl = l.remaining(pair.Entry(), tier.Now())
	}
	if l.pairs != nil {
		return l.pairs.SetPair(ctx, pair, ttl)
	}
	return l.store.Set(ctx, pair.Key(), pair.Entry(), ttl)
}

// bounded runs a call of the level's store within its time limit, unless its breaker is
// open; a local store needs neither.
func (l *level[K, V]) bounded(ctx context.Context, call func(context.Context) error) error {
	if l.local {
		return call(ctx)
	}
	return l.boundedCall(ctx, false, call)
}

// boundedCall is bounded for a store that is not local, and may have forgotten the call's
// context when that returns.
func (l *level[K, V]) boundedCall(ctx context.Context, forgets bool, call func(context.Context) error) (err error) {
	permit, err := l.breaker.allow()
	if err != nil {
		l.counts.skipped.Add(1)
		return err
	}
	err = errPanicked
	defer func() { l.breaker.report(permit, judged(ctx, err)) }()
	if d, ok := ctx.(*detached); ok {
		b := d.within(l.deadlines.lane(d))
		returned := false
		defer func() { b.release(forgets && returned) }()
		err = call(b)
		if returned = true; err != nil && d.isLeft() {
			err = errCallerLeft
		}
		return err
	}
	within, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	err = call(within)
	return err
}

// errPanicked is what a call has come to that did not return.
var errPanicked = errors.New("a store panicked")

func draw() float64 { return rand.Float64() }
