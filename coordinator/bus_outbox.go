package coordinator

import (
	"sync"

	"github.com/terracecache/terrace/tier"
)

// outbox holds the keys that are to be announced, each once, and at most max of them: of
// more, all keys are announced instead. To put one in is all that a writer waits for.
type outbox[K comparable] struct {
	wake chan struct{} // of one

	mu   sync.Mutex
	max  int
	keys map[K]announcement
	all  bool
	at   tier.Instant // of all
}

// announcement is what was done to a key, and when for the first time since it was
// announced.
type announcement struct {
	op busOp
	at tier.Instant
}

func newOutbox[K comparable](most int) *outbox[K] {
	return &outbox[K]{wake: make(chan struct{}, 1), max: most, keys: make(map[K]announcement)}
}

// put adds a key, and reports whether there was no room for it.
func (o *outbox[K]) put(key K, op busOp) (overflow bool) {
	now := tier.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	a, there := o.keys[key]
	switch {
	case o.all:
	case there:
		a.op = max(a.op, op)
		o.keys[key] = a
	case len(o.keys) >= o.max:
		overflow = true
		o.putAllLocked(now)
	default:
		o.keys[key] = announcement{op, now}
	}
	o.rouse()
	return overflow
}

// putAll has all keys announced.
func (o *outbox[K]) putAll() {
	now := tier.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.all {
		o.putAllLocked(now)
	}
	o.rouse()
}

func (o *outbox[K]) putAllLocked(at tier.Instant) {
	o.all, o.at = true, at
	o.keys = make(map[K]announcement) // and let go of what many have taken
}

func (o *outbox[K]) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take returns up to n keys, or that it is all, and since when the first of them waits;
// ok is false when there is nothing.
func (o *outbox[K]) take(n int) (keys map[K]busOp, all bool, since tier.Instant, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all {
		o.all = false
		return nil, true, o.at, true
	}
	if len(o.keys) == 0 {
		return nil, false, 0, false
	}
	keys = make(map[K]busOp, min(n, len(o.keys)))
	since = tier.Never
	for k, a := range o.keys {
		if len(keys) == n {
			break
		}
		keys[k] = a.op
		since = min(since, a.at)
		delete(o.keys, k)
	}
	return keys, false, since, true
}

// len returns how many keys wait; all are one.
func (o *outbox[K]) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all {
		return 1
	}
	return len(o.keys)
}
