package coordinator

import (
	"fmt"
	"sync/atomic"

	"github.com/terracecache/terrace/tier"
)

// flight is one look-up or load of a key under way, which any number of callers
// wait for.
type flight[K comparable, V any] struct {
	cache  *Cache[K, V]
	key    K
	shard  *shard[K, V]
	record *record[K, V]

	// Guarded by shard.mu; answer may be read by whoever saw done closed.
	done      chan struct{} // made when somebody is going to wait
	announced bool          // the answer is out, the flight goes on
	landed    bool
	fenced    bool
	holds     int32 // of those who read it: the leader and who has joined
	looking   bool  // for an answer or a lease; what others write meanwhile makes it doubted
	doubted   bool  // others have written since it began to look: what it has seen is not stored
	answer    answer[V]

	// early is the answer once it is known, while it is still being stored.
	early atomic.Pointer[answer[V]]

	// Of the one who leads the flight, or of its goroutine once that has begun.
	load       loading[K, V]
	finding    finding[K, V]
	from       int            // the first level that is still to be searched
	refreshing *tier.Entry[V] // what a refresh is to replace: it serves nothing older
	place      *gate          // what the flight occupies
	lease      *held          // nil without one; of who has abandoned the flight, if somebody has

	inBackground atomic.Bool // whoever abandons the flight gives that place back

	work       detached      // for the tiers
	next, prev *flight[K, V] // of those under way, if it is listed there
	listed     bool

	// watch tells who lands a flight that loads, which has loading by then.
	watch   atomic.Int32
	loading *loadStage[V]

	node atomic.Pointer[node] // nil until nodeNow is asked for it
}

// loadStage is what a flight needs once it asks the loader. Most flights find what they
// look for in a tier.
type loadStage[V any] struct {
	ctx    loaderContext
	loaded answer[V] // where early points to
	node   node
}

// nodeNow returns the node that stands for the flight where loaders wait for loads.
func (f *flight[K, V]) nodeNow() *node {
	if n := f.node.Load(); n != nil {
		return n
	}
	return f.standBy(new(node))
}

// standBy lets the node stand for the flight, and returns the one that does.
func (f *flight[K, V]) standBy(n *node) *node {
	n.owner = f
	n.ride.max = 1
	if !f.node.CompareAndSwap(nil, n) {
		return f.node.Load()
	}
	return n
}

// describe implements nodeOwner.
func (f *flight[K, V]) describe() string {
	return fmt.Sprintf("%s: %v", f.cache.name, f.key)
}

// wanted makes sure that there is a channel to wait on. The shard's lock is held.
func (f *flight[K, V]) wanted() {
	if f.done == nil {
		f.done = make(chan struct{})
	}
}

// answer is what a flight, or a look into the tiers, came to.
type answer[V any] struct {
	entry *tier.Entry[V] // nil where err is set
	err   error
	// source is the index of the tier that had the entry, or fromLoad.
	source int
	// refresh says that the policy wants a refresh of the entry.
	refresh bool
	// full says that the flight found no room and did nothing (L5); the entry, if
	// there is one, is the stale one at hand.
	full bool
	// loaderless says that the flight ended in a miss for want of a loader.
	loaderless bool
	// joined says that somebody else led the flight that gave the answer, and late
	// that the caller came when the load had already been made.
	joined, late bool
	// calm says that the entry is fresh for longer than it takes to say so.
	calm bool
}

// over reports whether the answer must not be served any more. One that the caller
// has waited for to be loaded is served even when that took longer than its life.
func (a *answer[V]) over(now tier.Instant) bool {
	return (a.source != fromLoad || a.late) && now >= a.entry.UsableUntil()
}

// fromLoad is the source of an answer that the loader gave.
const fromLoad = -1
