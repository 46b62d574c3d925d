package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// Get returns the value of the key: from the first tier that has a usable one, or
// from the loader. An error that is [ErrAbsent] says that there is none.
//
// Get waits no longer than its context; the load that it waited for goes on and
// fills the cache (L2).
func (c *Cache[K, V]) Get(ctx context.Context, key K) (V, error) {
	s := c.settings.Load()
	var e *tier.Entry[V]
	if s.top != nil {
		// The hit path. It must stay free of allocation, formatting, locks shared by
		// all keys, look-ups in the context and looks at the exact time.
		e, _ = s.top.Get(ctx, key)
		if e != nil && s.isCalm(e, c.clock.now()) {
			if c.counts.add(outcomeHit)%hitsPerCorrection == 0 {
				c.clock.correct()
			}
			return e.Value(), nil
		}
	}
	var a answer[V]
	c.answer(ctx, key, c.load, s, e, &a)
	return c.value(ctx, key, c.load, &a)
}

// GetOrLoad is Get with a loader of its own for this call; nil means the cache's.
// Callers of one key at one time share one load, whichever of their loaders it runs.
func (c *Cache[K, V]) GetOrLoad(ctx context.Context, key K, load Loader[K, V]) (V, error) {
	l := loading[K, V]{plain: load}
	if load == nil {
		l = c.load
	}
	s := c.settings.Load()
	var a answer[V]
	c.answer(ctx, key, l, s, s.first(ctx, key), &a)
	return c.value(ctx, key, l, &a)
}

// GetOrLoadEntry is GetOrLoad with a loader of the richer form.
func (c *Cache[K, V]) GetOrLoadEntry(ctx context.Context, key K, load EntryLoader[K, V]) (V, error) {
	l := loading[K, V]{entry: load}
	if load == nil {
		l = c.load
	}
	s := c.settings.Load()
	var a answer[V]
	c.answer(ctx, key, l, s, s.first(ctx, key), &a)
	return c.value(ctx, key, l, &a)
}

// value concludes a request whose answer is the value alone.
func (c *Cache[K, V]) value(ctx context.Context, key K, load loading[K, V], a *answer[V]) (v V, err error) {
	state, _ := c.conclude(ctx, key, load, a)
	switch {
	case a.err != nil:
		return v, a.err
	case state == Absent:
		return v, ErrAbsent
	default:
		return a.entry.Value(), nil
	}
}

// Lookup is Get that also tells where the answer came from, how old it is and
// whether it is stale. "There is none" is an answer with the State [Absent] and no
// error.
func (c *Cache[K, V]) Lookup(ctx context.Context, key K) (Result[V], error) {
	s := c.settings.Load()
	var a answer[V]
	c.answer(ctx, key, c.load, s, s.first(ctx, key), &a)
	state, refreshing := c.conclude(ctx, key, c.load, &a)
	if a.err != nil {
		return Result[V]{}, a.err
	}
	r := c.result(&a, state)
	r.Refreshing = refreshing
	return r, nil
}

// Result is the answer of a Lookup.
type Result[V any] struct {
	// Value is the value; the zero value when State is Absent.
	Value V
	// State tells a fresh value from a stale one and from none.
	State State
	// Tier is the name of the tier that had the answer; empty when a loader gave it.
	Tier string
	// Age is the time since the load of the value began.
	Age time.Duration
	// LoadTime is how long the load took; zero when unknown.
	LoadTime time.Duration
	// Validator is the origin's mark of this version; empty when there is none.
	Validator string
	// Refreshing reports whether a load in the background is about to replace the
	// value.
	Refreshing bool
}

// State tells what an answer is worth.
type State uint8

const (
	// Fresh is a value within its TTL.
	Fresh State = iota
	// Stale is a value past its TTL, served within the lifetime's stale windows.
	Stale
	// Absent is the knowledge that the origin has no value.
	Absent
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Fresh:
		return "fresh"
	case Stale:
		return "stale"
	case Absent:
		return "absent"
	default:
		return "unknown"
	}
}

// first returns what the first tier has, where it can be asked at once.
func (s *settings[K, V]) first(ctx context.Context, key K) *tier.Entry[V] {
	if s.top == nil {
		return nil
	}
	e, _ := s.top.Get(ctx, key) // an error is met again, and counted, further on
	return e
}

// answer finds the answer: what the first tier has if it will do, else by a look into
// the others, or by the key's flight. Answers are passed by pointer on this way, for
// they are large and those from memory quick.
func (c *Cache[K, V]) answer(ctx context.Context, key K, load loading[K, V], s *settings[K, V], e *tier.Entry[V], a *answer[V]) {
	if e != nil {
		if s.isCalm(e, c.clock.now()) {
			a.entry, a.calm = e, true
			return
		}
		if now := tier.Now(); now < e.UsableUntil() {
			if s.isCalm(e, now) {
				c.clock.start(now)
				a.entry, a.calm = e, true
				return
			}
			if d := s.decide(e, now); d != policy.Load {
				a.entry, a.refresh = e, d == policy.Refresh
				return
			}
		}
	}
	switch {
	case s.closed:
		a.err = ErrClosed
	case !c.table.keys.Storable(key):
		a.err = tier.ErrBadKey
	case ctx.Err() != nil:
		a.err = c.gaveUp(ctx) // nobody would wait for the answer
	default:
		// Callers wait in this frame and not deeper: when thousands wake at once, each reads
		// its stack from memory, and must not have needed a larger one than it began with.
		var place *gate // what we have entered for a flight
		for again := true; again; place, again = c.settle(ctx, load, a) {
			if f := c.board(ctx, key, load, place, a); f != nil {
				arrived := true
				if left := ctx.Done(); left == nil {
					<-f.done // a third of what a select takes, which counts where thousands wait
				} else {
					select {
					case <-f.done:
					case <-left:
						arrived = false
					}
				}
				c.take(ctx, f, arrived, a)
				c.disembark(f, a)
			}
		}
	}
}

// board looks into the tiers in memory, leads a new flight of the key, or finds one to
// join, which it returns. Without that, there is an answer, or no room for a flight. It
// takes over the place, if it is given one.
//
// Who joins a flight has called no deeper than this, so that a new goroutine's stack does:
// to copy thousands of them to larger ones takes milliseconds.
func (c *Cache[K, V]) board(ctx context.Context, key K, load loading[K, V], place *gate, a *answer[V]) (joined *flight[K, V]) {
	l, f, leads := c.table.enter(key)
	if f == nil || leads {
		if f = c.boardFirst(ctx, key, load, l, f, place, a); f == nil {
			return nil
		}
	}
	if place != nil {
		place.leave()
	}
	a.late = f.early.Load() != nil
	if n := nodeOf(ctx); n != nil {
		c.awaitInside(ctx, n, f, a)
		c.disembark(f, a)
		return nil
	}
	return f
}

// boardFirst is board for who has a look, or a new flight to lead.
func (c *Cache[K, V]) boardFirst(ctx context.Context, key K, load loading[K, V], l look[K, V], f *flight[K, V], place *gate, a *answer[V]) (joined *flight[K, V]) {
	leads := f != nil
	if leads {
		f.finding = c.newFinding()
	} else if f, leads = c.lookFirst(ctx, key, l, place, a); f == nil {
		return nil
	}
	if !leads {
		return f
	}
	*a = c.lead(ctx, f, load, place)
	return nil
}

// disembark notes that the answer is that of a flight which others led, and lets go of
// that.
func (c *Cache[K, V]) disembark(f *flight[K, V], a *answer[V]) {
	a.joined = true
	if a.source != fromLoad { // else it is not used again, and thousands may have joined it
		c.letGo(f)
	}
}

// settle reports whether the answer will not do, and a flight is to be boarded again, with
// the place that was entered for it, if one was. The answer is empty then.
func (c *Cache[K, V]) settle(ctx context.Context, load loading[K, V], a *answer[V]) (place *gate, again bool) {
	if a.entry != nil && !a.calm {
		a.calm = c.isCalm(a.entry)
	}
	switch {
	case a.full:
	case a.joined && a.loaderless && !load.none(),
		a.err == nil && !a.calm && a.over(tier.Now()):
		// The flight had no loader, and we have; or what it found is over by now
		// (T3). The next may do better, if there is time for one.
		if ctx.Err() != nil {
			*a = answer[V]{err: c.gaveUp(ctx), joined: a.joined}
			return nil, false
		}
		*a = answer[V]{}
		return nil, true
	default:
		return nil, false
	}
	// No room for another flight (L5).
	if c.settings.Load().servesOnError(a.entry, tier.Now()) {
		c.counts.saturated.Add(1)
		a.full = false
		return nil, false
	}
	place = &c.flights
	if n := nodeOf(ctx); n != nil {
		place = &n.ride
	}
	if err := c.waitForRoom(ctx, place); err != nil {
		*a = answer[V]{err: err, joined: a.joined}
		return nil, false
	}
	*a = answer[V]{}
	return place, true
}

// lookFirst looks into the tiers in memory. If that gives no answer it returns the
// flight to lead or to join.
func (c *Cache[K, V]) lookFirst(ctx context.Context, key K, l look[K, V], place *gate, a *answer[V]) (f *flight[K, V], leads bool) {
	x := c.newFinding()
	if c.lookInto(ctx, key, l, place, &x, a) {
		return nil, false
	}
	if f, leads = c.table.launchAfter(l); leads {
		f.finding, f.from = x, c.local
	}
	return f, leads
}

// lookInto searches the tiers in memory. If it has an answer it ends the look, and
// leaves the place, if it is given one.
func (c *Cache[K, V]) lookInto(ctx context.Context, key K, l look[K, V], place *gate, x *finding[K, V], a *answer[V]) (ok bool) {
	goesOn := false
	defer func() {
		if goesOn {
			return
		}
		l.end()
		if place != nil {
			place.leave()
		}
		// A store or a policy may have panicked, or be ending this goroutine.
		if p := recover(); p != nil {
			a.err, ok = &PanicError{Value: p, Stack: debug.Stack()}, true
		}
	}()
	// The first tier has been asked just before, where that can be. Only if nothing is
	// found below does it matter what came there since: a load that has ended meanwhile is not to
	// be made again (L1).
	c.search(ctx, key, min(1, c.local), c.local, nil, x)
	if x.hit == nil {
		c.search(ctx, key, 0, min(1, c.local), nil, x)
	}
	if x.hit == nil {
		goesOn = true
		return false
	}
	c.fillAbove(ctx, key, x)
	a.entry, a.source, a.refresh, a.calm = x.hit, x.source, x.refresh, x.calm
	return true
}

// waitForRoom waits within the caller's context for a place in the gate; one who has
// no deadline of his own waits as long as a load may take.
func (c *Cache[K, V]) waitForRoom(ctx context.Context, place *gate) error {
	c.counts.saturated.Add(1)
	ctx, cancel := context.WithTimeout(ctx, c.settings.Load().limits.LoadTimeout)
	defer cancel()
	defer context.AfterFunc(c.base, cancel)()
	if err := place.enter(ctx); err != nil {
		if c.base.Err() != nil {
			return ErrClosed
		}
		return fmt.Errorf("%w (%d): waiting for a turn: %w", ErrSaturated, c.settings.Load().limits.Flights, err)
	}
	return nil
}

// await waits for the flight that the caller leads.
func (c *Cache[K, V]) await(ctx context.Context, f *flight[K, V], a *answer[V]) {
	if n := nodeOf(ctx); n != nil {
		c.awaitInside(ctx, n, f, a)
		return
	}
	c.waitFor(ctx, f, a)
}

// awaitInside waits for a flight inside of a load, which must not wait for itself (L6).
func (c *Cache[K, V]) awaitInside(ctx context.Context, n *node, f *flight[K, V], a *answer[V]) {
	if err := n.await(f.nodeNow()); err != nil {
		a.err = err
		return
	}
	defer n.awaited(f.nodeNow())
	c.waitFor(ctx, f, a)
}

// waitFor waits for a flight's answer within the caller's context. It is what answer does
// in its own frame.
func (c *Cache[K, V]) waitFor(ctx context.Context, f *flight[K, V], a *answer[V]) {
	select {
	case <-f.done:
		c.take(ctx, f, true, a)
	case <-ctx.Done():
		c.take(ctx, f, false, a)
	}
}

// take takes the answer of a flight that has arrived, or at the end of the caller's context
// what there is. A loaded value is handed out when it has been stored, so that whoever asks
// next finds it; only at the end of its context a caller takes it as soon as it is there.
func (c *Cache[K, V]) take(ctx context.Context, f *flight[K, V], arrived bool, a *answer[V]) {
	late := a.late
	if arrived {
		*a = f.answer
	} else if early := f.early.Load(); early != nil {
		*a = *early
	} else {
		a.err = c.gaveUp(ctx)
	}
	a.late = late
}

// isCalm is that of the settings. Of thousands who wake at once few read the exact time.
func (c *Cache[K, V]) isCalm(e *tier.Entry[V]) bool {
	s := c.settings.Load()
	if s.isCalm(e, c.clock.now()) {
		return true
	}
	now := tier.Now()
	if !s.isCalm(e, now) {
		return false
	}
	c.clock.start(now)
	return true
}

func (c *Cache[K, V]) gaveUp(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("terrace: cache %q: gave up waiting: %w", c.name, err)
}

// conclude counts the request and starts the refresh that the policy wants.
func (c *Cache[K, V]) conclude(ctx context.Context, key K, load loading[K, V], a *answer[V]) (state State, refreshing bool) {
	if a.err != nil {
		c.counts.add(outcomeError)
		return state, false
	}
	state = a.state()
	if a.refresh {
		refreshing = c.startRefresh(ctx, key, load, a.entry)
	}
	switch {
	case state == Stale && a.source != fromLoad: // also where a load failed and others waited for it
		c.counts.add(outcomeStale)
	case a.joined:
		if c.counts.add(outcomeJoin)%hitsPerCorrection == 0 {
			c.clock.correct()
		}
	case a.source == fromLoad:
		c.counts.add(outcomeLoad)
	case state == Absent:
		c.counts.add(outcomeAbsent)
	default:
		if c.counts.add(outcomeHit+outcome(a.source))%hitsPerCorrection == 0 {
			c.clock.correct()
		}
	}
	return state, refreshing
}

func (a *answer[V]) state() State {
	switch {
	case a.calm:
		return Fresh
	case a.entry.Absent():
		return Absent
	case tier.Now() >= a.entry.FreshUntil():
		return Stale
	default:
		return Fresh
	}
}

func (c *Cache[K, V]) result(a *answer[V], state State) Result[V] {
	e := a.entry
	r := Result[V]{
		Value:     e.Value(),
		State:     state,
		Age:       tier.Now().Sub(e.LoadedAt()),
		LoadTime:  e.LoadTime(),
		Validator: e.Validator(),
	}
	if a.source != fromLoad {
		r.Tier = c.levels[a.source].name
	}
	return r
}
