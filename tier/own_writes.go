package tier

import (
	"sync"
	"sync/atomic"
)

// ownWrites remembers the heads that a store has tried to put under its keys lately: a
// change that is told of a key is its own if the key holds one of them. It remembers
// tries, before they are made, since a change may be told before the write is answered,
// and a write that was given up may still be made.
//
// It keeps two generations of keys. When the younger is full it becomes the older, which
// is forgotten.
type ownWrites struct {
	on atomic.Bool

	mu         sync.Mutex
	young, old map[string]ownHeads
}

const (
	// ownGeneration is how many keys a generation has: for as long as it takes to write
	// so many the store knows its writes again.
	ownGeneration = 1 << 14
	// ownTries is how many of a key's last heads are remembered.
	ownTries = 4
)

// ownHeads are the last heads that were put under one key.
type ownHeads struct {
	heads [ownTries][HeadSize]byte
	next  uint8
}

// remember has tries remembered from now on.
func (o *ownWrites) remember() { o.on.Store(true) }

// note remembers that the value is about to be put under the text.
func (o *ownWrites) note(text string, value []byte) {
	if !o.on.Load() || len(value) < HeadSize {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	h, ok := o.young[text]
	if !ok {
		h = o.old[text]
		if len(o.young) >= ownGeneration {
			o.old, o.young = o.young, nil
		}
		if o.young == nil {
			o.young = make(map[string]ownHeads)
		}
	}
	copy(h.heads[h.next][:], value)
	h.next = (h.next + 1) % ownTries
	o.young[text] = h
}

func (o *ownWrites) get(text string) (h ownHeads, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h, ok = o.young[text]; !ok {
		h, ok = o.old[text]
	}
	return h, ok
}

// has reports whether something was put under the text.
func (o *ownWrites) has(text string) bool {
	_, ok := o.get(text)
	return ok
}

// writer tells who has put the head under the text.
func (o *ownWrites) writer(text string, head []byte) Writer {
	if len(head) < HeadSize {
		return Others
	}
	h, ok := o.get(text)
	if !ok {
		return Others
	}
	for i := range h.heads {
		if string(h.heads[i][:]) != string(head[:HeadSize]) {
			continue
		}
		if headBuried(head) {
			return OwnMark
		}
		return OwnEntry
	}
	return Others
}
