package coordinator

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// invalidator takes out of the tiers in memory what others have written, as the bus or
// the shared tier tells, behind the same fence as a write of this process's own (W1).
// When something may have been missed it trusts nothing that they held until then.
type invalidator[K comparable, V any] struct {
	cache  *Cache[K, V]
	shares bool          // some tier is shared
	clamp  time.Duration // how long the tiers keep what they hold while nobody tells

	ctx     context.Context // ends when the cache is closed
	cancel  context.CancelFunc
	running sync.WaitGroup
	waiting gate // invalidations that wait for their key's turn

	mu         sync.Mutex
	dropped    tier.Instant // from when on the tiers in memory are trusted
	suspicious bool         // they are to be cleared
	clearing   bool         // a goroutine is at it

	clears atomic.Uint64
}

// invalidationsWaiting bounds the invalidations that wait for their key's turn. One more
// drops everything, which does not wait.
const invalidationsWaiting = 64

func newInvalidator[K comparable, V any](c *Cache[K, V], clamp time.Duration) *invalidator[K, V] {
	v := &invalidator[K, V]{
		cache:   c,
		shares:  len(c.levels) > countLocal(c.levels),
		clamp:   clamp,
		waiting: gate{max: invalidationsWaiting},
		dropped: tier.Now(),
	}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	return v
}

func countLocal[K comparable, V any](levels []*level[K, V]) (n int) {
	for _, l := range levels {
		if l.local {
			n++
		}
	}
	return n
}

// guard keeps the panic of a store from ending the process. What was to be dropped may
// then still be there.
func (v *invalidator[K, V]) guard() {
	if p := recover(); p != nil {
		v.cache.log.warn("invalidation: a store panicked", "", &PanicError{Value: p, Stack: debug.Stack()})
		v.suspect()
	}
}

// invalidate takes a key that others have written out of the tiers in memory. To this
// process it is a write of the key: it fences a load or fill under way, which may have
// read what was there before, and waits for the key's turn, lest such a one that has
// begun to store ends after it. It does not make the next key wait for that. It calls
// applied when all is done.
func (v *invalidator[K, V]) invalidate(key K, op busOp, applied func()) {
	v.cache.cooldowns.clear(key)
	v.drop(key, op, byOthers, applied)
}

// drop is invalidate that fences as the writer says.
func (v *invalidator[K, V]) drop(key K, op busOp, by writer, applied func()) {
	w, hasTurn := v.cache.table.begin(key, by)
	if hasTurn {
		defer w.end(true)
		v.dropLocal(key, op)
		applied()
		return
	}
	if op == busDrop || v.shares {
		v.dropLocal(key, op) // without the turn, so that few readers wait for whoever has it
	}
	if !v.waiting.tryEnter() {
		w.end(false)
		v.suspect()
		applied()
		return
	}
	v.running.Go(func() {
		defer v.waiting.leave()
		hasTurn := false
		defer func() { w.end(hasTurn) }()
		defer v.guard()
		if hasTurn = w.shard.takeTurn(v.ctx, w.record) == nil; hasTurn {
			v.dropLocal(key, op)
			applied()
		}
	})
}

// holds reports whether a tier in memory has something under the key.
func (v *invalidator[K, V]) holds(key K) bool {
	for _, l := range v.cache.levels {
		if l.local {
			if e, err := l.store.Get(v.ctx, key); e != nil || err != nil {
				return true
			}
		}
	}
	return false
}

// dropLocal takes a key out of the tiers in memory, from the bottom up, and out of what
// the shared ones are still to be told. What was expired elsewhere is expired here where no
// shared tier has it.
func (v *invalidator[K, V]) dropLocal(key K, op busOp) {
	c := v.cache
	now := tier.Now()
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		if !l.local {
			l.repeats.doubt(key)
			continue
		}
		var err error
		if op == busExpire && !v.shares {
			err = c.expireAt(v.ctx, l, key, now)
		} else {
			err = c.apply(v.ctx, l, key, nil, now)
		}
		if err != nil {
			c.levelFailed(l, "invalidate", err)
			c.repeatLater(v.ctx, i, key, repeat[K, V]{at: now}, err)
		} else if op != busExpire || v.shares {
			c.settled(l, key)
		}
	}
}

// suspect has nothing served from now on that the tiers in memory hold: no load or
// fill under way is stored, and what is there is not trusted until it has been cleared,
// which is done by a goroutine. What readers ask for from now on is read from below, or
// loaded, and stored as always; nothing else is.
func (v *invalidator[K, V]) suspect() {
	c := v.cache
	v.mu.Lock()
	defer v.mu.Unlock()
	c.table.fenceAll()
	v.dropped = tier.Now()
	for i, l := range c.levels {
		if l.local {
			c.distrust(i, v.dropped)
			l.repeats.becomeDeletions(v.dropped)
		} else {
			l.repeats.doubtAll(v.dropped)
		}
	}
	v.suspicious = true
	if !v.clearing {
		v.clearing = true
		v.running.Go(v.clearUp)
	}
}

// clearUp clears the tiers in memory for as long as they are suspect.
func (v *invalidator[K, V]) clearUp() {
	for {
		v.mu.Lock()
		if v.clearing = v.suspicious; !v.clearing {
			v.mu.Unlock()
			return
		}
		v.suspicious = false
		at := v.dropped
		v.mu.Unlock()
		v.clears.Add(1)
		v.clearLocal(at)
	}
}

// clearLocal clears the tiers in memory, from the bottom up. One that cannot be cleared
// is not trusted until all must be dead that it held.
func (v *invalidator[K, V]) clearLocal(at tier.Instant) {
	c := v.cache
	defer func() {
		if p := recover(); p != nil {
			c.log.warn("invalidation: a store panicked", "", &PanicError{Value: p, Stack: debug.Stack()})
		}
	}()
	// Whoever has a key's turn may be about to store what the fence came too late for.
	if c.table.settle(v.ctx) != nil {
		return // closed
	}
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		if !l.local || l.clear == nil {
			continue
		}
		if err := l.clear.Clear(context.WithoutCancel(v.ctx)); err != nil {
			c.levelFailed(l, "clear", err)
			continue
		}
		l.repeats.forget(at)
		l.floor.CompareAndSwap(int64(at), noFloor)
		if i == 0 {
			c.retop()
		}
	}
}

// clampStep is how often whoever tells of writes looks whether to call unheard.
func (v *invalidator[K, V]) clampStep(atMost time.Duration) time.Duration {
	if v.clamp <= 0 {
		return atMost
	}
	return max(time.Millisecond, min(atMost, v.clamp/2))
}

// unheard drops all that the tiers in memory hold if nobody has told of writes for so
// long that it is to go, and it could be read again from below.
func (v *invalidator[K, V]) unheard(now tier.Instant) {
	v.mu.Lock()
	overdue := v.clamp > 0 && now.Sub(v.dropped) >= v.clamp
	v.mu.Unlock()
	if overdue && v.canReadAgain() {
		v.suspect()
	}
}

// canReadAgain reports whether what is dropped could be read from below.
func (v *invalidator[K, V]) canReadAgain() bool {
	for _, l := range v.cache.levels {
		if !l.local && !l.breaker.isOpen() {
			return true
		}
	}
	return !v.shares
}

// close ends what is under way. Nobody may tell of writes any more.
func (v *invalidator[K, V]) close() {
	v.cancel()
	v.running.Wait()
}

// closeWithin runs what ends something, within the context and a little beyond it.
func (c *Cache[K, V]) closeWithin(ctx context.Context, what string, end func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-ended:
		return nil
	case <-grace.C:
		return fmt.Errorf("terrace: cache %q: close: %s is still in use: %w", c.name, what, ctx.Err())
	}
}
