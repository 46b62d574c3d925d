package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// tracking takes out of the tiers in memory what the first shared tier tells has changed
// there. What is above it holds only what has been read there, or was written there too,
// so that the tiers below do not matter.
//
// A change that is told may be this process's own, as the server tells of all writes
// alike: a Set's, a load's, a lease's mark. Dropping those would leave nothing in memory,
// and their fence no load that is stored. So a key that this process has written not long
// ago is looked at first: while what the tier holds now is its own, nobody has written
// later, and everything stays. That costs no reader anything: keys are looked at by one
// goroutine, together, each once however often it is told meanwhile. All others are
// dropped at once.
//
// A nil tracking is that of a cache without one.
type tracking[K comparable, V any] struct {
	cache   *Cache[K, V]
	above   *invalidator[K, V]
	level   *level[K, V]
	tracker tier.Tracker[K]
	most    int

	ctx     context.Context // ends when the cache is closed
	cancel  context.CancelFunc
	running sync.WaitGroup
	end     func()        // the tier's telling
	wake    chan struct{} // of one

	mu        sync.Mutex
	connected bool
	doubtful  map[K]struct{} // to be looked at

	marked map[K]struct{} // of look: keys seen with an own mark, to be looked at once more

	counts trackingCounts
}

// looksAtOnce is how many keys are looked at in one call.
const looksAtOnce = 512

// trackingStep is how often a tracking that is lost looks whether the tiers are to be
// dropped.
const trackingStep = time.Second

type trackingCounts struct {
	changes, all, own, looks, overflows, applied, gaps atomic.Uint64
}

// TrackingStats are the counts of a cache's tracking. All are zero where there is none.
// How long a write took to be told cannot be measured: the server does not say when it
// was made.
type TrackingStats struct {
	// Connected reports whether changes are told now, as far as the store can tell.
	Connected bool
	// Changes counts the keys that were told, this process's own writes included; All how
	// often any key may have changed.
	Changes, All uint64
	// Looks counts the round trips that asked the tier whose writes they were, Own the keys
	// that were this process's. Doubtful is how many wait for that, Overflows how many had
	// no room there and were dropped without it.
	Looks, Own uint64
	Doubtful   int
	Overflows  uint64
	// Applied counts the keys that were dropped from the tiers in memory.
	Applied uint64
	// Gaps counts how often changes may have been missed since the connection was lost.
	Gaps uint64
	// Dropped counts how often all was dropped that the tiers in memory held, where there
	// is a bus too for that as well.
	Dropped uint64
}

// firstShared returns the index of the first tier that is not in memory, or -1.
func firstShared[K comparable, V any](tiers []tier.Tier[K, V]) int {
	for i, t := range tiers {
		if !isNil(t.Store) && !tier.IsLocal(t.Store) {
			return i
		}
	}
	return -1
}

func (o *Options[K, V]) validateTrack() error {
	if !o.Track {
		return nil
	}
	i := firstShared(o.Tiers)
	if i < 0 {
		return errors.New("option Track: there is no shared tier that could tell of changes")
	}
	if _, ok := tier.AsTracker(o.Tiers[i].Store); !ok {
		return fmt.Errorf("option Track: tier %q, the first shared one, cannot tell of changes; Redis can, but not as a Ring, and not where replicas are read", o.Tiers[i].Name)
	}
	return nil
}

// startTracking has the tier tell. Without an error, stop must be called.
func startTracking[K comparable, V any](c *Cache[K, V], most int) (*tracking[K, V], error) {
	t := &tracking[K, V]{
		cache: c, above: c.above, most: most,
		wake:     make(chan struct{}, 1),
		doubtful: make(map[K]struct{}),
		marked:   make(map[K]struct{}),
	}
	for _, l := range c.levels {
		if !l.local {
			t.level = l
			break
		}
	}
	t.tracker, _ = tier.AsTracker(t.level.given)
	t.ctx, t.cancel = context.WithCancel(c.above.ctx)
	var err error
	if t.end, err = t.tracker.Track(trackingListener[K, V]{t}); err != nil {
		t.cancel()
		return nil, fmt.Errorf("terrace: cache %q: tier %q: track: %w", c.name, t.level.name, err)
	}
	t.running.Go(t.look)
	t.running.Go(t.watch)
	return t, nil
}

// stop ends all that the tracking runs.
func (t *tracking[K, V]) stop() {
	if t == nil {
		return
	}
	t.cancel()
	t.end()
	t.running.Wait()
}

func (t *tracking[K, V]) stats() (s TrackingStats) {
	if t == nil {
		return s
	}
	n := &t.counts
	t.mu.Lock()
	s.Connected, s.Doubtful = t.connected, len(t.doubtful)
	t.mu.Unlock()
	s.Changes, s.All, s.Looks, s.Own, s.Overflows = n.changes.Load(), n.all.Load(), n.looks.Load(), n.own.Load(), n.overflows.Load()
	s.Applied, s.Gaps, s.Dropped = n.applied.Load(), n.gaps.Load(), t.above.clears.Load()
	return s
}

// trackingListener is what the tier tells of.
type trackingListener[K comparable, V any] struct{ *tracking[K, V] }

// Connected implements [tier.TrackHandler].
func (t trackingListener[K, V]) Connected() {
	defer t.above.guard()
	t.above.suspect() // before the connection can be seen
	t.mu.Lock()
	t.connected = true
	t.mu.Unlock()
}

// Lost implements [tier.TrackHandler].
func (t trackingListener[K, V]) Lost(why error) {
	defer t.above.guard()
	t.counts.gaps.Add(1)
	t.cache.log.warn("tracking: changes may have been missed; what the tiers in memory hold is dropped", t.level.name, why)
	t.above.suspect() // before the loss can be seen
	t.mu.Lock()
	t.connected = false
	t.mu.Unlock()
}

// ChangedAll implements [tier.TrackHandler].
func (t trackingListener[K, V]) ChangedAll() {
	defer t.above.guard()
	t.counts.all.Add(1)
	t.above.suspect()
}

// Changed implements [tier.TrackHandler].
func (t trackingListener[K, V]) Changed(keys []K) {
	t.counts.changes.Add(uint64(len(keys)))
	for _, key := range keys {
		t.changed(key)
	}
}

func (t *tracking[K, V]) changed(key K) {
	defer t.above.guard()
	switch {
	case !t.cache.table.keys.Storable(key):
	case t.tracker.Wrote(key) && t.doubt(key):
	default:
		t.apply(key)
	}
}

// doubt has the key looked at, and reports whether there is room for it.
func (t *tracking[K, V]) doubt(key K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.doubtful[key]; !there && len(t.doubtful) >= t.most {
		t.counts.overflows.Add(1)
		return false
	}
	t.doubtful[key] = struct{}{}
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return true
}

// apply takes a key out of the tiers in memory that somebody else has written.
func (t *tracking[K, V]) apply(key K) {
	t.above.invalidate(key, busDrop, func() { t.counts.applied.Add(1) })
}

// takeDoubtful returns some of the keys that are to be looked at. One that is told while
// it is looked at is looked at once more.
func (t *tracking[K, V]) takeDoubtful() (keys []K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.doubtful {
		if len(keys) == looksAtOnce {
			break
		}
		keys = append(keys, key)
		delete(t.doubtful, key)
	}
	return keys
}

// look looks at the keys that this process may have written itself.
func (t *tracking[K, V]) look() {
	for {
		keys := t.takeDoubtful()
		if len(keys) > 0 {
			t.lookAt(keys)
			continue
		}
		select {
		case <-t.wake:
		case <-t.ctx.Done():
			return
		}
	}
}

// lookAt drops those of the keys that others have written, all where that cannot be told.
func (t *tracking[K, V]) lookAt(keys []K) {
	t.counts.looks.Add(1)
	var writers []tier.Writer
	err := guarded(func() error {
		return t.level.bounded(t.ctx, func(ctx context.Context) (err error) {
			writers, err = t.tracker.Writers(ctx, keys)
			return err
		})
	})
	if err != nil && t.ctx.Err() == nil {
		t.cache.levelFailed(t.level, "look at changed keys", err)
	}
	for i, key := range keys {
		writer := tier.Others
		if err == nil && i < len(writers) {
			writer = writers[i]
		}
		t.judge(key, writer)
	}
}

func (t *tracking[K, V]) judge(key K, writer tier.Writer) {
	defer t.above.guard()
	_, again := t.marked[key]
	delete(t.marked, key)
	switch writer {
	case tier.OwnEntry:
		// Whoever writes there writes to the tiers above after that, in the key's turn: they
		// have this, or nothing, or something later.
		t.counts.own.Add(1)
	case tier.OwnMark:
		t.counts.own.Add(1)
		t.dropMarked(key, again)
	default:
		t.apply(key)
	}
}

// dropMarked drops a key that holds a mark of this process. What stood there before the
// mark may have been a deletion by others, which it is taken for. A load that has put it
// there began after that, and is not fenced. What it has stored since the key was looked
// at is not dropped: where memory has something, the key is looked at once more.
func (t *tracking[K, V]) dropMarked(key K, again bool) {
	switch {
	case !t.above.holds(key):
	case !again && t.doubt(key):
		t.marked[key] = struct{}{}
	default:
		t.above.drop(key, busDrop, byFlight, func() {})
	}
}

// watch drops what the tiers in memory hold while the tracking is lost for long.
func (t *tracking[K, V]) watch() {
	tick := time.NewTicker(t.above.clampStep(trackingStep))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.mu.Lock()
			lost := !t.connected
			t.mu.Unlock()
			if lost {
				t.unheard()
			}
		case <-t.ctx.Done():
			return
		}
	}
}

func (t *tracking[K, V]) unheard() {
	defer t.above.guard()
	t.above.unheard(tier.Now())
}
