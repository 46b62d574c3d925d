package coordinator

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// repeat is a write that a level could not be told of: an entry, or a deletion
// where pair is nil. Until it is done, reads of the level take it for the level's
// answer (W4), unless the bus has told that others have written since.
type repeat[K comparable, V any] struct {
	pair   *tier.Pair[K, V]
	at     tier.Instant // when it began
	loaded bool         // it is of a load
	seen   sighting     // of a load: what the level held before it
}

// repeats holds the writes that failed in one level, the newest of each key, and at
// most max of them. A write is of no more use when all that it would overwrite must
// be dead; beyond max the one of which that is so the soonest is forgotten, and what the
// level holds of its key is not trusted. In a shared level that is never known. There those
// of loads make room for others: without them other processes read what is older until it
// ends, as they may, and without a Delete what they may not. Then the oldest is forgotten.
type repeats[K comparable, V any] struct {
	count atomic.Int64 // len(keys), to spare readers the lock

	mu      sync.Mutex
	max     int
	keys    map[K]*pending[K, V]
	order   soonestDead[K, V]
	running bool          // a worker is at it
	round   int           // of tries, over all workers
	closing bool          // the worker tries all once more and ends
	rush    chan struct{} // closed when closing
	again   chan struct{} // of one: the level answers again
	doubted tier.Instant  // up to when no write that began is an answer

	forgotten atomic.Pointer[forgotten[K]] // nil where none is
}

type pending[K comparable, V any] struct {
	key   K
	write repeat[K, V]
	dead  tier.Instant
	round int // in which it was tried last
	index int // in order

	loads   bool // all that the level lacks of the key are loads
	doubted bool // it is no answer
}

func newRepeats[K comparable, V any](n int) *repeats[K, V] {
	return &repeats[K, V]{max: n, keys: make(map[K]*pending[K, V]), rush: make(chan struct{}), again: make(chan struct{}, 1), doubted: noFloor}
}

func (r *repeats[K, V]) empty() bool { return r.count.Load() == 0 }

// resize changes how many are remembered. Those who are too many by then stay.
func (r *repeats[K, V]) resize(most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.max = most
}

func (r *repeats[K, V]) len() int { return int(r.count.Load()) }

// get returns what a reader takes for the level's answer where it lacks a write of the
// key: that write, or no entry where it is doubted.
func (r *repeats[K, V]) get(key K) (repeat[K, V], bool) {
	w, doubted, ok := r.find(key)
	if doubted {
		w.pair = nil
	}
	return w, ok
}

// find returns the write of the key that the level lacks.
func (r *repeats[K, V]) find(key K) (w repeat[K, V], doubted, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.keys[key]
	if p == nil {
		return w, false, false
	}
	return p.write, p.doubted || p.write.at <= r.doubted, true
}

// doubt has no reader take the key's write for an answer: another process has written the
// key, and perhaps later. It is tried as before, since what the level holds may be older
// still; where the other's write has reached it, that stays.
func (r *repeats[K, V]) doubt(key K) {
	if r.empty() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.keys[key]; p != nil {
		p.doubted = true
	}
}

// doubtAll is doubt for all writes that began up to the instant.
func (r *repeats[K, V]) doubtAll(upTo tier.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubted = upTo
}

// put keeps a write as the newest of its key. It reports whether one had to be forgotten,
// and whether a worker has to be started.
func (r *repeats[K, V]) put(key K, w repeat[K, V], dead tier.Instant) (forgot, start bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.keys[key]; p != nil {
		p.write, p.dead, p.loads, p.doubted = w, dead, p.loads && w.loaded, false
		heap.Fix(&r.order, p.index)
	} else {
		p := &pending[K, V]{key: key, write: w, dead: dead, loads: w.loaded}
		r.keys[key] = p
		heap.Push(&r.order, p)
		if forgot = len(r.keys) > r.max; forgot {
			r.makeRoom(r.order[0])
		}
	}
	r.count.Store(int64(len(r.keys)))
	start = !r.running
	r.running = true
	return forgot, start
}

// makeRoom forgets a write. Readers find its key doubted before they miss it here. It is
// called with the lock held.
func (r *repeats[K, V]) makeRoom(p *pending[K, V]) {
	f := r.forgotten.Load()
	if f == nil {
		f = newForgotten[K]()
	}
	f.note(p.key, tier.Now(), p.dead)
	r.forgotten.Store(f)
	r.remove(p)
}

// trustAgain drops the keys of forgotten writes once all that is doubted must be dead, and
// reports whether it has.
func (r *repeats[K, V]) trustAgain(now tier.Instant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.forgotten.Load()
	if f == nil || !f.isOver(now) {
		return false
	}
	r.forgotten.Store(nil)
	return true
}

// done forgets the key's write, which has been made or overtaken, and reports
// whether there was one, and whether it was the last of all.
func (r *repeats[K, V]) done(key K) (was, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.keys[key]
	if p == nil {
		return false, false
	}
	r.remove(p)
	return true, len(r.keys) == 0
}

// remove is called with the lock held.
func (r *repeats[K, V]) remove(p *pending[K, V]) {
	heap.Remove(&r.order, p.index)
	delete(r.keys, p.key)
	r.count.Store(int64(len(r.keys)))
}

// becomeDeletions makes deletions of all writes: a Clear has overtaken them, and
// what the level holds must go.
func (r *repeats[K, V]) becomeDeletions(at tier.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.keys {
		p.write, p.loads = repeat[K, V]{at: at}, false
	}
	heap.Init(&r.order)
}

// forget forgets the writes that began up to the instant, at which the level has
// been cleared, and of whatever else was forgotten by then that it was.
func (r *repeats[K, V]) forget(upTo tier.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.keys {
		if p.write.at <= upTo {
			r.remove(p)
		}
	}
	if f := r.forgotten.Load(); f != nil && f.last <= upTo {
		r.forgotten.Store(nil)
	}
}

// due returns a key that has not been tried in the round, after dropping those that
// are of no more use; or false when there is none. empty reports whether there are
// none at all, and then the worker has ended.
func (r *repeats[K, V]) due(now tier.Instant) (key K, ok, empty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 && r.order[0].dead <= now {
		r.remove(r.order[0])
	}
	for key, p := range r.keys {
		if p.round < r.round {
			p.round = r.round
			return key, true, false
		}
	}
	if len(r.keys) == 0 {
		r.running = false
		return key, false, true
	}
	return key, false, false
}

// nextRound makes all writes due again.
func (r *repeats[K, V]) nextRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round++
}

// end is the end of a worker that leaves writes behind.
func (r *repeats[K, V]) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = false
}

// hurry has the worker try once more at once and then end.
func (r *repeats[K, V]) hurry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
	close(r.rush)
}

// isClosing reports whether the worker's next round is its last.
func (r *repeats[K, V]) isClosing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

// soonestDead is a heap of writes, the one that is to be forgotten first at its top.
type soonestDead[K comparable, V any] []*pending[K, V]

func (h soonestDead[K, V]) Len() int { return len(h) }

func (h soonestDead[K, V]) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.dead != b.dead:
		return a.dead < b.dead
	case a.loads != b.loads:
		return a.loads
	default:
		return a.write.at < b.write.at
	}
}

func (h soonestDead[K, V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *soonestDead[K, V]) Push(x any) {
	p := x.(*pending[K, V])
	p.index = len(*h)
	*h = append(*h, p)
}

func (h *soonestDead[K, V]) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return p
}

// repeatLater keeps a write that a level failed to take, to be tried again. A value
// that the level can never take has left nothing older there; what must not be
// forgotten is that it was there.
func (c *Cache[K, V]) repeatLater(ctx context.Context, i int, key K, w repeat[K, V], cause error) {
	if errors.Is(cause, ErrClosed) && c.settings.Load().closed {
		return
	}
	l := c.levels[i]
	if w.pair != nil && (errors.Is(cause, tier.ErrTooLarge) || errors.Is(cause, tier.ErrUnencodable)) {
		w = repeat[K, V]{at: w.at, loaded: w.loaded}
		if l.swap == nil || c.apply(ctx, l, key, nil, tier.Now()) == nil {
			c.settled(l, key)
			return
		}
	}
	forgot, start := l.repeats.put(key, w, tier.Now().Add(c.longestIn(l)))
	if forgot {
		l.counts.forgotten.Add(1)
		c.log.warn("too many failed writes to remember; what the tier holds of their keys from before is not trusted", l.name,
			fmt.Errorf("limits: %d to recover", c.settings.Load().limits.Recovery))
	}
	if i == 0 {
		c.retop()
	}
	if start {
		if !c.life.begin() {
			l.repeats.end()
			return
		}
		go c.catchUp(i)
	}
}

// settled notes that a write has reached a level, which overtakes one that had not.
func (c *Cache[K, V]) settled(l *level[K, V], key K) {
	if !l.repeats.empty() {
		c.overtook(l, key)
	}
}

func (c *Cache[K, V]) overtook(l *level[K, V], key K) {
	was, last := l.repeats.done(key)
	if last && l == c.levels[0] {
		c.retop()
	}
	if was && !l.local {
		c.bus.wrote(key, busDrop) // whoever has heard of it before has read what was there until now
	}
}

// catchUp tells a level of the writes that it lacks, until it has all. Between two
// rounds it waits, the longer the more rounds in a row have come to nothing.
func (c *Cache[K, V]) catchUp(i int) {
	l := c.levels[i]
	done := false
	defer func() {
		// Code of the user's may panic or exit here too; then another goes on.
		_ = recover()
		if !done && !l.repeats.isClosing() && c.life.begin() {
			go c.catchUp(i)
		} else if !done {
			l.repeats.end()
		}
		c.life.end()
	}()
	failures, rest := 1, policy.Forever
	for {
		c.pause(l, min(c.backoff.Wait(failures, draw()), rest))
		closing := l.repeats.isClosing()
		l.repeats.nextRound()
		var progress, empty bool
		progress, empty, rest = c.catchUpRound(l)
		if empty {
			done = true
			if i == 0 {
				c.retop()
			}
			return
		}
		if closing {
			done = true
			l.repeats.end()
			return
		}
		failures++
		if progress {
			failures = 1
		}
	}
}

// A round ends early when so many tries in a row have failed that the level must be
// down, and not only some of its keys be refused; more where it has taken others.
const (
	enoughFailures      = 8
	enoughFailuresAlive = 32
)

// catchUpRound tries each write once. It reports whether any was made, whether none are
// left, and how long to wait at most, as a part of the level may be back before all of it is.
func (c *Cache[K, V]) catchUpRound(l *level[K, V]) (progress, empty bool, rest time.Duration) {
	rest = policy.Forever
	for failed, enough := 0, enoughFailures; failed < enough; {
		key, ok, empty := l.repeats.due(tier.Now())
		if !ok {
			return progress, empty, rest
		}
		err := c.tryRepeat(l, key)
		if errors.Is(err, ErrSkipped) {
			return progress, false, rest
		}
		var resting tier.Resting
		switch {
		case err == nil:
			progress, failed, enough = true, 0, enoughFailuresAlive
			continue
		case errors.As(err, &resting): // which says nothing of the next key, and costs nothing
			rest = min(rest, max(resting.RetryAfter(), c.backoff.Wait(1, draw())))
		default:
			failed++
		}
		c.levelFailed(l, "catch up", err)
	}
	return progress, false, rest
}

// nudge ends the waiting between two tries: the level answers again. It does not
// block.
func (r *repeats[K, V]) nudge() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// pause waits for the time between two tries, or until the level answers again, or
// the cache is closing. A level that is left alone is tried when its breaker lets
// somebody try.
func (c *Cache[K, V]) pause(l *level[K, V], d time.Duration) {
	if l.breaker.isOpen() {
		d = l.breaker.probe
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.repeats.again:
	case <-l.repeats.rush:
	case <-c.base.Done():
	}
}

// rushRepeats ends the waiting between tries.
func (c *Cache[K, V]) rushRepeats() {
	for _, l := range c.levels {
		l.repeats.hurry()
	}
}

// tryRepeat tries the key's write again in the key's turn.
func (c *Cache[K, V]) tryRepeat(l *level[K, V], key K) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	w := c.table.hold(key)
	defer w.release()
	if err := w.shard.takeTurn(c.base, w.record); err != nil {
		return err
	}
	defer w.shard.giveTurn(w.record)
	r, _, ok := l.repeats.find(key)
	if !ok {
		return nil // overtaken
	}
	err = c.repeatAt(c.base, l, key, r)
	if err == nil {
		l.counts.repeated.Add(1)
		c.settled(l, key)
	}
	return err
}

// repeatAt carries a write to its level. A level that does not take the entry but
// lets it be deleted has nothing older left, which is enough. What another process
// has written there meanwhile stays.
func (c *Cache[K, V]) repeatAt(ctx context.Context, l *level[K, V], key K, r repeat[K, V]) error {
	if l.swap == nil {
		err := c.apply(ctx, l, key, r.pair, tier.Now())
		if err != nil && r.pair != nil {
			err = c.apply(ctx, l, key, nil, tier.Now())
		}
		return err
	}
	// When it has been tried for longer than a tombstone stays, nobody knows any more
	// whether a Delete of another process came after it.
	if r.pair != nil && tier.Now().Sub(r.at) < c.hold() {
		if _, err := c.storeAt(ctx, l, r.pair, true, r.seen); err == nil {
			return nil
		}
		// A level that answers, and fails to store once more, refuses the entry; one
		// that has just come back takes it now.
		if err := l.bounded(ctx, func(ctx context.Context) error { _, _, err := l.sightingOf(ctx, key, r.at); return err }); err != nil {
			return err
		}
		if _, err := c.storeAt(ctx, l, r.pair, true, r.seen); err == nil {
			return nil
		}
	}
	return c.removeOlder(ctx, l, key, r.at)
}

// removeOlder takes away what a level that writes on condition holds, unless it is
// from after the instant.
func (c *Cache[K, V]) removeOlder(ctx context.Context, l *level[K, V], key K, began tier.Instant) error {
	return l.bounded(ctx, func(ctx context.Context) error {
		for range 3 {
			seen, newer, err := l.sightingOf(ctx, key, began)
			if newer || err != nil {
				return err
			}
			if !seen.holds && tier.Now().Sub(began) >= c.hold() {
				return nil // nothing to take away, and nobody to fence any more
			}
			if buried, err := l.swap.BuryIf(ctx, key, c.hold(), seen.version); buried || err != nil {
				return err
			}
		}
		return l.swap.Bury(ctx, key, c.hold()) // as deleteAt does
	})
}
