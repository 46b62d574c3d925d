package coordinator

import (
	"context"
	"errors"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// finding is what a search of the tiers came to.
type finding[K comparable, V any] struct {
	// hit is an entry to answer with, at level source; refresh is the policy's wish.
	hit     *tier.Entry[V]
	pair    *tier.Pair[K, V] // that the hit is part of; nil where the level keeps none
	source  int
	refresh bool
	calm    bool
	// reserve is the newest entry that is usable but not to be answered with unless
	// a load fails, at level reserveSource. It is always one that the flight itself
	// has found: what a reader found before may have been deleted before the flight
	// began.
	reserve       *tier.Entry[V]
	reserveSource int
	seen          sightings
}

func (c *Cache[K, V]) newFinding() (x finding[K, V]) {
	x.seen = newSightings(c.firstSwap, c.lastSwap)
	return x
}

// at returns what the level was seen to hold; the zero sighting is unknown.
func (x *finding[K, V]) at(level int) sighting {
	if seen := x.seen.at(level); seen != nil {
		return *seen
	}
	return sighting{}
}

// asHit returns a flight's answer with the hit. It is not calm: to fill the levels
// above, and to wake who waits, may take longer than the entry lives.
func (x *finding[K, V]) asHit() answer[V] {
	return answer[V]{entry: x.hit, source: x.source, refresh: x.refresh}
}

// asReserve returns the answer with the reserve.
func (x *finding[K, V]) asReserve() answer[V] {
	return answer[V]{entry: x.reserve, source: x.reserveSource}
}

// search reads the levels from..to in order and stops at the first entry that the
// policy serves. With newerThan it serves only entries whose load began after that
// one's: those that somebody else has refreshed (P3).
func (c *Cache[K, V]) search(ctx context.Context, key K, from, to int, newerThan *tier.Entry[V], x *finding[K, V]) {
	s := c.settings.Load()
	for i := from; i < to; i++ {
		e, pair, seen := c.look(ctx, i, key)
		if at := x.seen.at(i); at != nil {
			*at = seen
		}
		if e == nil {
			continue
		}
		if newerThan == nil && s.isCalm(e, c.clock.now()) {
			x.hit, x.pair, x.source, x.calm = e, pair, i, true
			return
		}
		now := tier.Now()
		if now >= e.UsableUntil() {
			continue
		}
		if newerThan == nil && s.isCalm(e, now) {
			c.clock.start(now)
			x.hit, x.pair, x.source, x.calm = e, pair, i, true
			return
		}
		if newerThan == nil || e.LoadedAt() > newerThan.LoadedAt().Add(sameLoad) {
			if d := s.decide(e, now); d != policy.Load {
				x.hit, x.pair, x.source, x.refresh = e, pair, i, d == policy.Refresh
				return
			}
		}
		if x.reserve == nil || supersedes(e, x.reserve) {
			x.reserve, x.reserveSource = e, i
		}
	}
}

// supersedes reports whether an entry is newer than another, or a copy of it that
// lives longer.
func supersedes[V any](e, other *tier.Entry[V]) bool {
	switch apart := e.LoadedAt().Sub(other.LoadedAt()); {
	case apart > sameLoad:
		return true
	case apart < -sameLoad:
		return false
	default:
		return e.UsableUntil() > other.UsableUntil()
	}
}

// sameLoad is how far apart the beginnings of two loads must be to be told apart: a
// time that went through another process comes back a little off.
const sameLoad = 1e6 // 1 ms

// look reads one level. A failure counts as a miss (W4, S2). It returns the pair that the
// entry is part of, too, where there is one.
func (c *Cache[K, V]) look(ctx context.Context, i int, key K) (e *tier.Entry[V], pair *tier.Pair[K, V], seen sighting) {
	var err error
	l := c.levels[i]
	if !l.repeats.empty() {
		if w, ok := l.repeats.get(key); ok {
			// The level could not be told of a write; the write is the truth.
			return w.pair.Entry(), w.pair, sighting{}
		}
	}
	switch {
	case l.pairs != nil:
		pair, err = l.pairs.GetPair(ctx, key)
		e = pair.Entry()
	case l.local && l.swap == nil:
		e, err = l.store.Get(ctx, key)
	default:
		e, seen.version, err = l.read(ctx, key)
	}
	switch {
	case err == nil:
		seen.known, seen.holds = true, e != nil
	case errors.Is(err, tier.ErrUnreadable):
		seen.known, seen.holds = true, true
		l.counts.unreadable.Add(1)
		c.log.warn("unreadable entry counts as a miss and is overwritten", l.name, err)
		return nil, nil, seen
	default:
		c.levelFailed(l, "get", err)
		return nil, nil, sighting{}
	}
	if e == nil || !c.trusts(i, key, e) {
		return nil, nil, seen
	}
	return e, pair, seen
}

// read reads the level within its time limit.
func (l *level[K, V]) read(ctx context.Context, key K) (e *tier.Entry[V], version tier.Version, err error) {
	if l.local {
		return l.get(ctx, key)
	}
	err = l.boundedCall(ctx, l.forgets, func(ctx context.Context) (err error) {
		e, version, err = l.get(ctx, key)
		return err
	})
	return e, version, err
}

// get reads the level, with the version where it has one.
func (l *level[K, V]) get(ctx context.Context, key K) (e *tier.Entry[V], version tier.Version, err error) {
	if l.swap != nil {
		return l.swap.GetVersion(ctx, key)
	}
	e, err = l.store.Get(ctx, key)
	return e, version, err
}

// levelFailed counts and logs the failure of a level.
func (c *Cache[K, V]) levelFailed(l *level[K, V], op string, err error) {
	if errors.Is(err, ErrClosed) && c.settings.Load().closed {
		return
	}
	if errors.Is(err, ErrSkipped) || errors.Is(err, errCallerLeft) {
		return // counted where it was skipped, or no failure of the level
	}
	l.counts.errors.Add(1)
	l.counts.kinds.add(tier.FailureKind(err))
	c.log.warn("tier failed to "+op, l.name, err)
}
