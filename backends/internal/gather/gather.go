// Package gather lets reads of a remote store that are under way at the same time
// share round trips.
//
// A read that finds few round trips under way goes at once, so that a lone reader
// pays nothing. Those that come while some are under way wait together, until one of these
// ends or they are a good part of all who read. No clock decides how many share a round
// trip; how busy the store is does.
package gather

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/tier"
)

const (
	// atOnce is how many round trips are under way before reads wait for each other.
	atOnce = 4

	// crowd is how many keys are read at a time before round trips wait to be the fuller,
	// as each costs the same whatever it carries.
	crowd = 16

	// crowdAtOnce is into how many round trips a crowd parts: while one is on its way,
	// those whose answers have come board the next, so that neither client nor server
	// waits for the other.
	crowdAtOnce = 3

	// patience is how long reads wait for a round trip to end. Then they make one of
	// their own: those under way are slow, or stalled, and another connection may not
	// be. It is well above a round trip of a local network, and so short that a
	// tier's time limit does not feel it.
	patience = 500 * time.Microsecond
)

// Gatherer makes round trips for reads. It may be used concurrently.
type Gatherer[V any] struct {
	gate  *gate.Gate
	most  int
	fetch Fetch[V]
	alone Alone[V] // nil: by fetch

	waiters sync.Pool

	mu     sync.Mutex
	open   *batch[V]   // takes further reads; nil when none waits
	spare  []lists[V]  // of batches that are over
	aloft  []*batch[V] // have departed and not landed
	places index       // of the open batch's keys
	flying int         // round trips under way that somebody waits for, and those about to begin
	recent int         // how many keys the last round trip had
	aboard int         // keys of those that fly
	throng int         // how many keys have been aboard lately, at most
	alarm  *time.Timer
	armed  bool
	closed bool
}

// Fetch makes one round trip: it sets the answer of each key, which stands at its
// place. All keys are different. Fetch may be slower than its context; it must not
// change the answers once it has returned.
type Fetch[V any] func(ctx context.Context, keys []string, answers []Answer[V])

// Answer is what was found under one key; its zero value is the answer until Fetch
// sets another.
type Answer[V any] struct {
	Value V
	Err   error
}

// Alone makes a read by which no other is under way, on its caller's goroutine, unless it reports
// false. It heeds the context.
type Alone[V any] func(ctx context.Context, key string) (a Answer[V], ok bool)

// New returns a gatherer whose round trips carry most keys at most, and pass the gate.
func New[V any](g *gate.Gate, most int, fetch Fetch[V]) *Gatherer[V] {
	return &Gatherer[V]{gate: g, most: most, fetch: fetch}
}

// WithAlone has reads that are alone be made by a function of their own, where that can. Those do
// not pass the gate. It is called before the first read.
func (g *Gatherer[V]) WithAlone(alone Alone[V]) *Gatherer[V] {
	g.alone = alone
	return g
}

// Do returns the key's answer, or the context's error when that has ended: at once, or
// half a millisecond later where many read. The round trip that it takes part in is
// nobody's own: it goes on for as long as one of those who wait for it does. The answer is
// shared if others get the same one, who asked for the same key. After Close the error is
// [tier.ErrClosed].
func (g *Gatherer[V]) Do(ctx context.Context, key string) (a Answer[V], shared bool) {
	if err := ctx.Err(); err != nil {
		return Answer[V]{Err: err}, false
	}
	if g.alone != nil && g.beginAlone() {
		if a, ok := g.goAlone(ctx, key); ok {
			return a, false
		}
	}
	w := g.waiter()
	w.heed(ctx)
	b, visited := g.board(ctx, key, w)
	if b == nil {
		g.free(w)
		return Answer[V]{Err: tier.ErrClosed}, false
	}
	if !w.wait(visited) {
		if !g.leave(b, w) {
			g.free(w)
			return Answer[V]{Err: ctx.Err()}, false
		}
		w.waitAnyway()
	}
	a, shared = w.answer, w.shared
	g.free(w)
	return a, shared
}

// board gives the read its place in a batch, and sees to it that the batch goes. It also
// says whether the waiter is visited, and need not see itself when its context ends.
func (g *Gatherer[V]) board(ctx context.Context, key string, w *waiter[V]) (b *batch[V], visited bool) {
	deadline, limited := ctx.Deadline() // which is anybody's, so not with the mutex
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false
	}
	if g.open == nil {
		g.open = newBatch(ctx, g.freeLists())
		g.places.reset()
	}
	b = g.open
	w.key = b.add(deadline, limited, key, &g.places)
	w.place = len(b.lists.waiters)
	b.lists.waiters = append(b.lists.waiters, w)
	w.visited = w.ended != nil && g.throng >= crowd
	if w.visited && !g.armed {
		g.arm(patience)
	}
	switch {
	case len(b.lists.keys) >= g.most:
		g.depart()
	case b.called:
	case g.isPart():
		g.depart()
	case g.mayStart():
		g.call()
	case !g.armed:
		g.arm(patience)
	}
	return b, w.visited
}

// mayStart reports whether so few round trips are under way that another may begin. It
// is called with the mutex.
func (g *Gatherer[V]) mayStart() bool {
	if g.throng >= crowd {
		return g.flying < 1 || g.isPart()
	}
	return g.flying < atOnce
}

// isPart reports whether those who wait are as many of a crowd as are to go together. It
// is called with the mutex.
func (g *Gatherer[V]) isPart() bool {
	return g.throng >= crowd && g.flying < crowdAtOnce && len(g.open.lists.keys)*crowdAtOnce >= g.throng
}

// depart makes the round trip of the open batch at once. It is called with the mutex.
func (g *Gatherer[V]) depart() {
	g.flying++
	go g.fly(g.take())
}

// call starts a round trip for who waits. It is called with the mutex.
func (g *Gatherer[V]) call() {
	g.flying++
	g.open.called = true
	if g.recent > 1 {
		go g.flyInCompany()
	} else {
		go g.flyNext()
	}
}

// flyInCompany lets those goroutines board that can run now: where many read, the
// first is followed by others, and without this it would always go alone.
func (g *Gatherer[V]) flyInCompany() {
	runtime.Gosched()
	g.flyNext()
}

// flyNext makes the round trip of those who wait.
func (g *Gatherer[V]) flyNext() {
	g.mu.Lock()
	b := g.take()
	if b == nil { // they went with another, or have left
		g.flying--
	}
	g.mu.Unlock()
	if b != nil {
		g.fly(b)
	}
}

// take closes the open batch to further reads, and returns it. It is called with the
// mutex by who has counted a round trip for it.
func (g *Gatherer[V]) take() *batch[V] {
	b := g.open
	if b == nil {
		return nil
	}
	g.open = nil
	g.goes(len(b.lists.keys))
	b.depart()
	g.aloft = append(g.aloft, b)
	return b
}

// landed notes that the batch has its answers: nobody visits or leaves it any more. It is
// called with the mutex.
func (g *Gatherer[V]) landed(b *batch[V]) {
	b.hasLanded = true
	if i := slices.Index(g.aloft, b); i >= 0 {
		g.aloft = slices.Delete(g.aloft, i, i+1)
	}
}

// fly makes the batch's round trip, and then one after the other for as long as reads
// wait.
func (g *Gatherer[V]) fly(b *batch[V]) {
	ended := false
	defer func() {
		if !ended { // the client has ended this goroutine
			go g.flyOn(b)
		}
	}()
	for b != nil {
		g.trip(b)
		b = g.next(b)
	}
	ended = true
}

func (g *Gatherer[V]) flyOn(b *batch[V]) {
	if b = g.next(b); b != nil {
		g.fly(b)
	}
}

// next returns the batch to go on with after another, or nil.
func (g *Gatherer[V]) next(after *batch[V]) *batch[V] {
	if len(after.lists.keys) > 1 {
		runtime.Gosched() // those who got their answers may ask again
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !after.deserted { // which has been counted off
		g.hasGone(len(after.lists.keys))
	}
	g.keepLists(after)
	if g.open == nil || !g.mayStart() {
		return nil
	}
	g.flying++
	return g.take()
}

// freeLists returns lists for a batch that is not of a lone read, or none. It is called with
// the mutex.
func (g *Gatherer[V]) freeLists() (l lists[V]) {
	if g.recent <= 1 {
		return l
	}
	if n := len(g.spare); n > 0 {
		l, g.spare[n-1] = g.spare[n-1], l
		g.spare = g.spare[:n-1]
		return l
	}
	l.keys, l.shared = make([]string, 0, g.recent), make([]bool, 0, g.recent)
	l.answers, l.waiters = make([]Answer[V], 0, g.recent), make([]*waiter[V], 0, g.recent)
	return l
}

// keepLists keeps those of a batch that is over. It is called with the mutex.
func (g *Gatherer[V]) keepLists(b *batch[V]) {
	if b.intact && cap(b.lists.keys) > 1 && len(g.spare) < crowdAtOnce {
		g.spare = append(g.spare, b.lists.emptied())
	}
	b.lists = lists[V]{}
}

// leave takes a caller whose context has ended out of the batch, unless there is an
// answer.
func (g *Gatherer[V]) leave(b *batch[V], w *waiter[V]) (answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.hasLanded {
		return true
	}
	b.lists.waiters[w.place] = nil
	b.waiting--
	switch {
	case b.waiting > 0:
	case g.open == b:
		g.open = nil
	default: // its answer would come late: a round trip that somebody waits for may begin
		b.deserted = true
		b.cancel()
		g.hasGone(len(b.lists.keys))
		g.goOn()
	}
	return false
}

// goOn starts a round trip for those who wait, where one more may be. It is called with the mutex.
func (g *Gatherer[V]) goOn() {
	if g.open != nil && !g.open.called && g.mayStart() {
		g.call()
	}
}

func (g *Gatherer[V]) arm(d time.Duration) {
	g.armed = true
	if g.alarm == nil {
		g.alarm = time.AfterFunc(d, g.ring)
	} else {
		g.alarm.Reset(d)
	}
}

// ring starts a round trip for those who have waited for long, and wakes those of a crowd
// whose contexts have ended. So each of many who wait has one thing to wait for, which
// is half the price of two.
func (g *Gatherer[V]) ring() {
	g.mu.Lock()
	g.armed = false
	again := time.Duration(0)
	if g.visit() {
		again = patience
	}
	var late *batch[V]
	if g.open != nil && !g.open.called {
		if rest := patience - time.Since(g.open.begun); rest > 0 {
			again = rest
		} else {
			g.flying++
			late = g.take()
		}
	}
	if again > 0 {
		g.arm(again)
	}
	g.mu.Unlock()
	if late != nil {
		g.fly(late)
	}
}

// visit looks at the contexts of those who cannot see for themselves that these end, and
// reports whether there are any left. It is called with the mutex.
func (g *Gatherer[V]) visit() (again bool) {
	for _, b := range g.aloft {
		again = b.visit() || again
	}
	return g.open != nil && g.open.visit() || again
}

// Close turns away who waits for a round trip to begin, and who comes later. Those
// under way end by themselves, and so does the alarm when nobody has to be visited.
func (g *Gatherer[V]) Close() {
	g.mu.Lock()
	g.closed = true
	b := g.open
	g.open = nil
	if b != nil {
		b.fail(tier.ErrClosed)
		g.landed(b)
	}
	g.mu.Unlock()
	if b != nil {
		b.wake()
	}
}
