package coordinator

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// clock spares hits the reading of the exact time, which would be half their cost.
// While hits come often it keeps an approximate time, a little behind; when they
// cease it stops, and nothing of it is left. What an approximate time decides must
// hold for all of the clockLag that follows.
//
// A tick needs a goroutine, which waits its turn where more goroutines want to run
// than can: for seconds in an overloaded process. So now and then a hit corrects the
// time, and where hits are too few for that the clock does not run. It lags by more
// than clockLag only if all that makes hits stood still for longer, and then until
// the first tick or correction.
type clock struct {
	approx atomic.Int64  // a tier.Instant; clockStopped while nobody keeps it
	asked  atomic.Uint64 // how often it was asked to run
	since  atomic.Int64  // when the last clockWorth times of those began, a tier.Instant
	ticked atomic.Int64  // when it last ticked, or was started, a tier.Instant
	ticker *time.Timer
	hits   func() uint64 // tells how many hits there were since it was last called
	closed atomic.Bool

	_ [128]byte // readers share the line of approx with nobody who writes
}

const (
	clockTick = 10 * time.Millisecond
	// clockLag leaves room for ticks that come late, such as under a CPU quota that
	// stops the process for a tenth of a second.
	clockLag = 250 * time.Millisecond
	// clockWorth is how many hits must come in a clockTick for the clock to run. For
	// fewer the exact time costs next to nothing.
	clockWorth = 64
	// hitsPerCorrection is after how many hits, of those that one copy of a counter
	// counts, one looks whether the clock is right.
	hitsPerCorrection = 128
	// clockStopped is so late that nothing but what never ends is far from it, and so
	// early that what is added to it does not wrap round.
	clockStopped = math.MaxInt64 / 2
)

func newClock(hits func() uint64) *clock {
	k := &clock{hits: hits}
	k.approx.Store(clockStopped)
	k.since.Store(math.MinInt64)
	k.ticker = time.AfterFunc(time.Hour, k.tick)
	k.ticker.Stop()
	return k
}

// now returns a time at most clockLag ago, or one that is not to come soon while the
// clock is stopped.
func (k *clock) now() tier.Instant { return tier.Instant(k.approx.Load()) }

// start makes the clock run, if it stands and is asked to often. It is told the exact
// time.
func (k *clock) start(now tier.Instant) {
	if k.approx.Load() != clockStopped || k.asked.Add(1)%clockWorth != 0 {
		return
	}
	before := tier.Instant(k.since.Swap(int64(now)))
	if now.Sub(before) > clockTick {
		return
	}
	if k.approx.CompareAndSwap(clockStopped, int64(now)) {
		k.ticked.Store(int64(now))
		k.goOn()
	}
}

// correct sets the time right if the tick is late.
func (k *clock) correct() {
	before := k.approx.Load()
	if before == clockStopped {
		return
	}
	if now := tier.Now(); now.Sub(tier.Instant(before)) > 2*clockTick {
		k.approx.CompareAndSwap(before, int64(now))
	}
}

func (k *clock) tick() {
	now := tier.Now()
	since := now.Sub(tier.Instant(k.ticked.Load()))
	if k.closed.Load() || k.hits() < clockWorth*uint64(since/clockTick) {
		k.approx.Store(clockStopped)
		return
	}
	k.ticked.Store(int64(now))
	k.approx.Store(int64(now))
	k.goOn()
}

// goOn waits for the next tick, unless stop has come in between.
func (k *clock) goOn() {
	k.ticker.Reset(clockTick)
	if k.closed.Load() {
		k.stop()
	}
}

// stop stops the clock for ever.
func (k *clock) stop() {
	k.closed.Store(true)
	k.ticker.Stop()
	k.approx.Store(clockStopped)
}
