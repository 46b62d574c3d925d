package coordinator

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/terracecache/terrace/tier"
)

// lead brings a new flight to its end for the caller who started it. What remains to
// be searched of the tiers in memory is searched on the caller's goroutine, and so are
// the others when the caller cannot give up waiting anyway. All else is done by a
// goroutine of the flight's own, which the caller waits for like everybody else. It
// takes over the place, if it is given one.
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
		f.nodeNow().parent = parent
		if err := f.recursion(); err != nil {
			return answer[V]{err: err}
		}
	}
	f.load = load
	x := &f.finding
	c.search(ctx, f.key, f.from, c.local, nil, x)
	f.from = c.local
	switch {
	case x.hit != nil:
		c.fill(ctx, f)
		return x.asHit()
	case !c.allLocal():
	case load.none():
		return answer[V]{err: ErrMiss, loaderless: true}
	case c.coolsDown(f):
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
	if !c.begin(f) {
		return answer[V]{err: ErrClosed}
	}
	started = true
	f.place = place
	f.work.values = ctx
	if c.searchesHere(ctx) {
		f.work.called = ctx.Done() != nil
		landed := c.searchHere(f)
		f.work.called = false
		if landed {
			a = f.answer
			// Code of the user's may have panicked, and what was written to a shared tier may
			// still hold the flight's context.
			if a.entry != nil && a.source <= c.local {
				c.letGo(f)
			}
			return a
		}
	}
	f.shard.mu.Lock()
	f.wanted()
	f.shard.mu.Unlock()
	go c.run(f)
	c.await(ctx, f, &a)
	return a
}

// begin enters the flight among those under way, unless the cache is closing.
func (c *Cache[K, V]) begin(f *flight[K, V]) bool {
	if !c.life.begin() {
		return false
	}
	f.shard.mu.Lock()
	f.shard.underway.add(f)
	f.shard.mu.Unlock()
	if c.base.Err() != nil { // Close has ended those under way before this one came
		f.work.end(context.Canceled)
	}
	return true
}

// findPlace enters the flights, or where they are full and a loader waits for this
// one, that loader's ride: the loader has a place itself, and to wait for another
// could be to wait for itself.
func (c *Cache[K, V]) findPlace(f *flight[K, V]) *gate {
	if c.flights.tryEnter() {
		return &c.flights
	}
	if n := f.node.Load(); n != nil && n.parent != nil && n.parent.ride.tryEnter() {
		return &n.parent.ride
	}
	return nil
}

// recursion returns an error when a flight of the same key is among those whose
// loaders wait for this one: it was detached by a write of its own loader.
func (f *flight[K, V]) recursion() error {
	for n := f.nodeNow().parent; n != nil; n = n.parent {
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

// run is the flight's goroutine. The flight has a place and is under way; run ends
// both.
func (c *Cache[K, V]) run(f *flight[K, V]) {
	defer c.leavePlaces(f) // where another has landed the flight
	landed := false
	defer func() { c.mend(f, recover(), landed) }()
	if !c.searchRest(f) && !c.winLease(f) {
		c.doLoad(f)
	}
	landed = true
}

// searchesHere reports whether the caller searches the shared levels for the flight that
// he leads. One who may leave does where nothing else is to be written there that he could
// leave in the middle, and he has the time that the level is given; if he leaves all the
// same the search begins anew without him. From a store that does not heed contexts he
// would leave a call behind, which would have the flight make a second.
func (c *Cache[K, V]) searchesHere(ctx context.Context) bool {
	switch shared := len(c.levels) - c.local; {
	case shared == 0:
		return false
	case ctx.Done() == nil:
		return true
	case shared > 1, c.levels[c.local].deaf:
		return false
	}
	at, limited := ctx.Deadline()
	return !limited || time.Until(at) > c.levels[c.local].timeout
}

// searchHere is searchRest on the goroutine of the caller who leads the flight.
func (c *Cache[K, V]) searchHere(f *flight[K, V]) (landed bool) {
	returned := false
	defer func() {
		if p := recover(); p != nil || !returned {
			c.mend(f, p, false)
			landed = true
		}
	}()
	landed = c.searchRest(f)
	returned = true
	return landed
}

// mend lands a flight when code of the user's other than the loader, such as a store
// or a policy, has panicked or ended the goroutine.
func (c *Cache[K, V]) mend(f *flight[K, V], panicked any, landed bool) {
	switch {
	case panicked != nil:
		c.finish(f, answer[V]{err: &PanicError{Value: panicked, Stack: debug.Stack()}})
	case !landed:
		c.finish(f, answer[V]{err: ErrGoexit})
	}
	f.work.end(context.Canceled)
}

// searchRest searches the levels that are left, and lands the flight unless the
// loader has to be asked. A refresh looks into all of them for an entry newer than
// the one that it replaces.
func (c *Cache[K, V]) searchRest(f *flight[K, V]) (landed bool) {
	x := &f.finding
	c.lookAnew(f, f.from)
	if f.work.isLeft() && (x.hit == nil || f.isOvertaken()) {
		return false // and is called again
	}
	f.from = len(c.levels)
	switch {
	case x.hit != nil:
		c.fill(c.contextOfFill(f), f)
		c.finish(f, x.asHit())
	case f.load.none():
		c.finish(f, answer[V]{err: ErrMiss, loaderless: true})
	case c.coolsDown(f):
		c.finish(f, x.asReserve())
	default:
		return false
	}
	return true
}

// coolsDown reports whether the flight's answer is the stale value at hand, since a
// load has failed not long ago (L4).
func (c *Cache[K, V]) coolsDown(f *flight[K, V]) bool {
	reserve := f.finding.reserve
	if reserve == nil {
		return false
	}
	now := tier.Now()
	return c.settings.Load().servesOnError(reserve, now) && c.cooldowns.active(f.key, now)
}

// finish lands a flight from its own goroutine. Its places are free before anybody
// learns of its end.
func (c *Cache[K, V]) finish(f *flight[K, V], a answer[V]) {
	c.releaseLease(f)
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

// landed lands a flight that is under way.
func (c *Cache[K, V]) landed(f *flight[K, V], a answer[V]) {
	if c.table.land(f, a) {
		c.life.end()
	}
}

// fill writes what the flight has found into the levels above, unless somebody else
// has the turn to write.
func (c *Cache[K, V]) fill(ctx context.Context, f *flight[K, V]) {
	if f.finding.source == 0 || !f.claim() {
		return
	}
	defer f.shard.giveTurn(f.record)
	c.fillAbove(ctx, f.key, &f.finding)
}

// contextOfFill returns the context in which the levels above are written. One that only
// levels in memory get has no end and is no part of the flight, which may be used again
// while a store still holds it.
func (c *Cache[K, V]) contextOfFill(f *flight[K, V]) context.Context {
	if x := &f.finding; x.source > 0 && x.source <= c.local {
		return context.WithoutCancel(f.work.values)
	}
	return &f.work
}

// fillAbove writes an entry that was found into the levels above it, for the life
// that it has left (T1). The caller has the key's turn.
func (c *Cache[K, V]) fillAbove(ctx context.Context, key K, x *finding[K, V]) {
	// A store may hold the entry under a key that it takes for the same.
	if x.source > 0 && (x.pair == nil || x.pair.Key() != key) {
		x.pair = tier.PairOf(key, x.hit)
	}
	for i := x.source - 1; i >= 0; i-- {
		l := c.levels[i]
		stored, err := c.storeAt(ctx, l, x.pair, true, x.at(i))
		switch {
		case err != nil:
			c.levelFailed(l, "fill", err)
		case !stored:
			c.counts.fenced.Add(1)
			return
		default:
			l.counts.fills.Add(1)
			c.settled(l, key)
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
		return true
	})
	if shed {
		c.counts.refreshesShed.Add(1)
		l := c.settings.Load().limits
		c.log.warn("refresh left to a later read: too many under way", "", fmt.Errorf("limits: %d in the background, %d flights", l.Background, l.Flights))
	}
	if f == nil {
		return flying
	}
	f.place = &c.flights
	f.inBackground.Store(true)
	if !c.begin(f) {
		c.leavePlaces(f)
		c.table.land(f, answer[V]{err: ErrClosed})
		return false
	}
	c.counts.refreshes.Add(1)
	f.load, f.refreshing = load, e
	f.finding = c.newFinding()
	f.work.values = ctx
	// Nobody waits for a refresh, so the loader that the reader may be in is no part
	// of what the refresh's own loader waits for.
	f.work.nodeless = true
	go c.run(f)
	return true
}
