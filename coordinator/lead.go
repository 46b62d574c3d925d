package coordinator

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/terracecache/terrace/tier"
)

// lead brings a new flight to its end for the caller who started it. Tiers in memory
// are looked into on the caller's goroutine; what may block goes to a goroutine of
// the flight's own, which the caller waits for like everybody else.
func (c *Cache[K, V]) lead(ctx context.Context, f *flight[K, V], load loading[K, V], place *gate) (a answer[V]) {
	started := false
	a.err = ErrGoexit // what stands if code of the user's ends this goroutine
	defer func() {
		if started {
			return
		}
		if p := recover(); p != nil {
			a = answer[V]{err: &PanicError{Value: p, Stack: debug.Stack()}}
		}
		if place != nil {
			place.leave()
		}
		c.table.land(f, a)
	}()

	if parent := nodeOf(ctx); parent != nil {
		f.node.parent = parent
		if err := f.recursion(); err != nil {
			return answer[V]{err: err}
		}
	}
	x := c.newFinding()
	c.search(ctx, f.key, 0, c.local, nil, &x)
	switch {
	case x.hit != nil:
		c.fill(ctx, f, &x)
		return answer[V]{entry: x.hit, source: x.source, refresh: x.refresh}
	case c.local < len(c.levels):
	case load.none():
		return answer[V]{err: ErrMiss, loaderless: true}
	case c.coolsDown(f, &x):
		return x.asReserve()
	}
	if place == nil {
		place = c.findPlace(f)
	}
	if place == nil {
		a = x.asReserve()
		a.full = true
		return a
	}
	if !c.life.begin() {
		return answer[V]{err: ErrClosed}
	}
	f.shard.mu.Lock()
	f.wanted()
	f.shard.mu.Unlock()
	started = true
	f.place = place
	go c.run(ctx, f, load, x, nil)
	return c.await(ctx, f, false)
}

// findPlace enters the flights, or where they are full and a loader waits for this
// one, that loader's ride: the loader has a place itself, and to wait for another
// could be to wait for itself.
func (c *Cache[K, V]) findPlace(f *flight[K, V]) *gate {
	if c.flights.tryEnter() {
		return &c.flights
	}
	if parent := f.node.parent; parent != nil && parent.ride.tryEnter() {
		return &parent.ride
	}
	return nil
}

// recursion returns an error when a flight of the same key is among those whose
// loaders wait for this one: it was detached by a write of its own loader.
func (f *flight[K, V]) recursion() error {
	for n := f.node.parent; n != nil; n = n.parent {
		o, ok := n.owner.(*flight[K, V])
		if ok && o.cache == f.cache && o.key == f.key && !o.hasLanded() {
			return &CycleError{Path: []string{f.describe(), f.describe()}}
		}
	}
	return nil
}

func (f *flight[K, V]) hasLanded() bool {
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	return f.landed
}

// run is the flight's goroutine. It has a place in c.flights and a beginning in
// c.life, and ends both. With refreshing, it replaces that entry: it looks into all
// tiers for a newer one first and serves nobody in between.
func (c *Cache[K, V]) run(ctx context.Context, f *flight[K, V], load loading[K, V], x finding[V], refreshing *tier.Entry[V]) {
	defer c.leavePlaces(f) // where another has landed the flight
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(c.base, func() { cancel(ErrClosed) })
	done := false
	defer func() {
		unhook()
		cancel(nil)
		// Code of the user's other than the loader, such as a store or a policy, may
		// panic or exit as well.
		if p := recover(); p != nil {
			c.finish(f, answer[V]{err: &PanicError{Value: p, Stack: debug.Stack()}})
		} else if !done {
			c.finish(f, answer[V]{err: ErrGoexit})
		}
	}()

	from := c.local
	if refreshing != nil {
		from = 0
	}
	c.search(ctx, f.key, from, len(c.levels), refreshing, &x)
	switch {
	case x.hit != nil:
		c.fill(ctx, f, &x)
		c.finish(f, answer[V]{entry: x.hit, source: x.source, refresh: x.refresh})
	case load.none():
		c.finish(f, answer[V]{err: ErrMiss, loaderless: true})
	case c.coolsDown(f, &x):
		c.finish(f, x.asReserve())
	default:
		c.doLoad(ctx, f, load, &x, refreshing != nil)
	}
	done = true
}

// coolsDown reports whether the flight's answer is the stale value at hand, since a
// load has failed not long ago (L4).
func (c *Cache[K, V]) coolsDown(f *flight[K, V], x *finding[V]) bool {
	now := tier.Now()
	return c.settings.Load().servesOnError(x.reserve, now) && c.cooldowns.active(f.key, now)
}

// finish lands a flight from its own goroutine. Its places are free before anybody
// learns of its end.
func (c *Cache[K, V]) finish(f *flight[K, V], a answer[V]) {
	c.leavePlaces(f)
	c.landed(f, a)
}

// leavePlaces gives back what the flight's goroutine, which calls it, occupies.
func (c *Cache[K, V]) leavePlaces(f *flight[K, V]) {
	c.leaveBackground(f)
	if f.place != nil {
		f.place.leave()
		f.place = nil
	}
}

func (c *Cache[K, V]) leaveBackground(f *flight[K, V]) {
	if f.inBackground.CompareAndSwap(true, false) {
		c.background.leave()
	}
}

// landed lands a flight that has a beginning in c.life.
func (c *Cache[K, V]) landed(f *flight[K, V], a answer[V]) {
	if c.table.land(f, a) {
		c.life.end()
	}
}

// fill writes an entry that was found into the levels above it, for the life that
// it has left (T1). A level whose turn is taken is left for the next time.
func (c *Cache[K, V]) fill(ctx context.Context, f *flight[K, V], x *finding[V]) {
	if x.source == 0 {
		return
	}
	if !f.claim() {
		return
	}
	defer f.shard.giveTurn(f.record)
	for i := x.source - 1; i >= 0; i-- {
		l := c.levels[i]
		stored, err := c.storeAt(ctx, l, f.key, x.hit, true, x.at(i))
		switch {
		case err != nil:
			c.levelFailed(l, "fill", err)
		case !stored:
			c.counts.fenced.Add(1)
			return
		default:
			l.counts.fills.Add(1)
			c.settled(l, f.key)
		}
	}
}

// startRefresh starts a load of the key in the background, unless one is under way,
// the key is cooling down after a failure, or there is no room (Z2). It reports
// whether one is under way now.
func (c *Cache[K, V]) startRefresh(ctx context.Context, key K, load loading[K, V], e *tier.Entry[V]) bool {
	if load.none() || c.cooldowns.active(key, tier.Now()) {
		return false
	}
	shed := false
	f, flying := c.table.refreshing(key, func() bool {
		if !c.background.tryEnter() {
			shed = true
			return false
		}
		if !c.flights.tryEnter() {
			c.background.leave()
			shed = true
			return false
		}
		if !c.life.begin() {
			c.flights.leave()
			c.background.leave()
			return false
		}
		return true
	})
	if shed {
		c.counts.refreshesShed.Add(1)
		c.log.warn("refresh left to a later read: too many under way", "", fmt.Errorf("limits: %d in the background, %d flights", c.limits.Background, c.limits.Flights))
	}
	if f == nil {
		return flying
	}
	c.counts.refreshes.Add(1)
	f.place = &c.flights
	f.inBackground.Store(true)
	x := c.newFinding()
	// Nobody waits for a refresh, so the loader that the reader may be in is no part
	// of what the refresh's own loader waits for.
	go c.run(context.WithValue(ctx, nodeKey{}, (*node)(nil)), f, load, x, e)
	return true
}
