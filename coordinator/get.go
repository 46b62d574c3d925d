package coordinator

import (
	"context"
	"errors"
	"fmt"
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
	if s.top != nil {
		// The hit path. It must stay free of allocation, formatting, locks shared by
		// all keys and look-ups in the context.
		if e, _ := s.top.Get(ctx, key); e != nil {
			if s.isCalm(e, c.clock.now()) {
				c.counts.add(outcomeHit)
				return e.Value(), nil
			}
			if now := tier.Now(); now < e.UsableUntil() {
				if s.isCalm(e, now) {
					c.clock.start(now)
				}
				d := s.decide(e, now)
				if d == policy.Serve && now < e.FreshUntil() && !e.Absent() {
					c.counts.add(outcomeHit)
					return e.Value(), nil
				}
				r, err := c.found(ctx, key, c.load, s, e, d)
				return r.Value, orAbsent(r, err)
			}
		}
	}
	r, err := c.fly(ctx, key, c.load, s)
	return r.Value, orAbsent(r, err)
}

// GetOrLoad is Get with a loader of its own for this call; nil means the cache's.
// Callers of one key at
// one time share one load, whichever of their loaders it runs.
func (c *Cache[K, V]) GetOrLoad(ctx context.Context, key K, load Loader[K, V]) (V, error) {
	l := loading[K, V]{plain: load}
	if load == nil {
		l = c.load
	}
	r, err := c.lookup(ctx, key, l)
	return r.Value, orAbsent(r, err)
}

// GetOrLoadEntry is GetOrLoad with a loader of the richer form.
func (c *Cache[K, V]) GetOrLoadEntry(ctx context.Context, key K, load EntryLoader[K, V]) (V, error) {
	l := loading[K, V]{entry: load}
	if load == nil {
		l = c.load
	}
	r, err := c.lookup(ctx, key, l)
	return r.Value, orAbsent(r, err)
}

// Lookup is Get that also tells where the answer came from, how old it is and
// whether it is stale. "There is none" is an answer with the State [Absent] and no
// error.
func (c *Cache[K, V]) Lookup(ctx context.Context, key K) (Result[V], error) {
	return c.lookup(ctx, key, c.load)
}

func (c *Cache[K, V]) lookup(ctx context.Context, key K, load loading[K, V]) (Result[V], error) {
	s := c.settings.Load()
	if s.top != nil {
		if e, _ := s.top.Get(ctx, key); e != nil {
			if now := tier.Now(); now < e.UsableUntil() {
				return c.found(ctx, key, load, s, e, s.decide(e, now))
			}
		}
	}
	return c.fly(ctx, key, load, s)
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

func orAbsent[V any](r Result[V], err error) error {
	if err == nil && r.State == Absent {
		return ErrAbsent
	}
	return err
}

// found answers with a usable entry that the first tier had, as the policy has
// decided.
func (c *Cache[K, V]) found(ctx context.Context, key K, load loading[K, V], s *settings[K, V], e *tier.Entry[V], d policy.Decision) (Result[V], error) {
	if d == policy.Load {
		return c.fly(ctx, key, load, s)
	}
	return c.conclude(ctx, key, load, answer[V]{entry: e, source: 0, refresh: d == policy.Refresh}, false)
}

// fly answers by the key's flight: the one under way, or a new one.
func (c *Cache[K, V]) fly(ctx context.Context, key K, load loading[K, V], s *settings[K, V]) (Result[V], error) {
	var a answer[V]
	var joined bool
	switch {
	case s.closed:
		a.err = ErrClosed
	case !c.table.keys.Storable(key):
		a.err = tier.ErrBadKey
	case ctx.Err() != nil:
		a.err = c.gaveUp(ctx) // nobody would wait for the answer
	default:
		a, joined = c.board(ctx, key, load)
	}
	return c.conclude(ctx, key, load, a, joined)
}

// board joins the key's flight or leads a new one, and waits for its answer.
func (c *Cache[K, V]) board(ctx context.Context, key K, load loading[K, V]) (a answer[V], joined bool) {
	var place *gate // what we have entered for the flight
	for {
		f, leader := c.table.join(key)
		if leader {
			a, joined = c.lead(ctx, f, load, place), false
		} else {
			if place != nil {
				place.leave()
			}
			a, joined = c.await(ctx, f, true), true
		}
		place = nil
		switch {
		case a.full:
		case joined && a.loaderless && !load.none(),
			a.err == nil && a.over(tier.Now()):
			// The flight had no loader, and we have; or what it found is over by now
			// (T3). The next may do better, if there is time for one.
			if ctx.Err() != nil {
				return answer[V]{err: c.gaveUp(ctx)}, joined
			}
			continue
		default:
			return a, joined
		}
		// No room for another flight (L5).
		if c.settings.Load().servesOnError(a.entry, tier.Now()) {
			c.counts.saturated.Add(1)
			a.full = false
			return a, joined
		}
		place = &c.flights
		if n := nodeOf(ctx); n != nil {
			place = &n.ride
		}
		if err := c.waitForRoom(ctx, place); err != nil {
			return answer[V]{err: err}, joined
		}
	}
}

// waitForRoom waits within the caller's context for a place in the gate; one who has
// no deadline of his own waits as long as a load may take.
func (c *Cache[K, V]) waitForRoom(ctx context.Context, place *gate) error {
	c.counts.saturated.Add(1)
	ctx, cancel := context.WithTimeout(ctx, c.limits.LoadTimeout)
	defer cancel()
	defer context.AfterFunc(c.base, cancel)()
	if err := place.enter(ctx); err != nil {
		if c.base.Err() != nil {
			return ErrClosed
		}
		return fmt.Errorf("%w (%d): waiting for a turn: %w", ErrSaturated, c.limits.Flights, err)
	}
	return nil
}

// await waits for a flight's answer within the caller's context. A loaded value is
// handed out when it has been stored, so that whoever asks next finds it; only at the
// end of its context a caller takes it as soon as it is there.
func (c *Cache[K, V]) await(ctx context.Context, f *flight[K, V], joined bool) answer[V] {
	late := joined && f.early.Load() != nil
	if n := nodeOf(ctx); n != nil {
		if err := n.await(&f.node); err != nil {
			return answer[V]{err: err}
		}
		defer n.awaited(&f.node)
	}
	var a answer[V]
	select {
	case <-f.done:
		a = f.answer
	case <-ctx.Done():
		early := f.early.Load()
		if early == nil {
			return answer[V]{err: c.gaveUp(ctx)}
		}
		a = *early
	}
	a.late = late
	return a
}

func (c *Cache[K, V]) gaveUp(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("terrace: cache %q: gave up waiting: %w", c.name, err)
}

// conclude counts the request, starts the refresh that the policy wants, and makes
// the result.
func (c *Cache[K, V]) conclude(ctx context.Context, key K, load loading[K, V], a answer[V], joined bool) (Result[V], error) {
	if a.err != nil {
		c.counts.add(outcomeError)
		return Result[V]{}, a.err
	}
	r := c.result(a, tier.Now())
	if a.refresh {
		r.Refreshing = c.startRefresh(ctx, key, load, a.entry)
	}
	switch {
	case r.State == Stale && a.source != fromLoad: // also where a load failed and others waited for it
		c.counts.add(outcomeStale)
	case joined:
		c.counts.add(outcomeJoin)
	case a.source == fromLoad:
		c.counts.add(outcomeLoad)
	case r.State == Absent:
		c.counts.add(outcomeAbsent)
	default:
		c.counts.add(outcomeHit + outcome(a.source))
	}
	return r, nil
}

func (c *Cache[K, V]) result(a answer[V], now tier.Instant) Result[V] {
	e := a.entry
	r := Result[V]{
		Value:     e.Value(),
		Age:       now.Sub(e.LoadedAt()),
		LoadTime:  e.LoadTime(),
		Validator: e.Validator(),
	}
	switch {
	case e.Absent():
		r.State = Absent
	case now >= e.FreshUntil():
		r.State = Stale
	}
	if a.source != fromLoad {
		r.Tier = c.levels[a.source].name
	}
	return r
}
