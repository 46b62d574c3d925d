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
// It lags by more only if the whole process was stopped for longer, and then until
// the first goroutine is scheduled after that.
type clock struct {
	approx atomic.Int64 // a tier.Instant; clockStopped while nobody keeps it
	asked  atomic.Int64 // when it was last asked to run, a tier.Instant
	ticker *time.Timer
	busy   func() bool // reports whether there were hits since it was last called
	closed atomic.Bool

	_ [128]byte // readers share the line of approx with nobody who writes
}

const (
	clockTick = 10 * time.Millisecond
	// clockLag leaves room for ticks that come late, such as under a CPU quota that
	// stops the process for a tenth of a second.
	clockLag = 250 * time.Millisecond
	// clockWorth is how soon after one another two hits must come for the clock to be
	// worth starting.
	clockWorth = time.Millisecond
	// clockStopped is so late that nothing but what never ends is far from it, and so
	// early that what is added to it does not wrap round.
	clockStopped = math.MaxInt64 / 2
)

func newClock(busy func() bool) *clock {
	k := &clock{busy: busy}
	k.approx.Store(clockStopped)
	k.asked.Store(math.MinInt64)
	k.ticker = time.AfterFunc(time.Hour, k.tick)
	k.ticker.Stop()
	return k
}

// now returns a time at most clockLag ago, or one that is not to come soon while the
// clock is stopped.
func (k *clock) now() tier.Instant { return tier.Instant(k.approx.Load()) }

// start makes the clock run, if it stands and has been asked to not long ago. It is
// told the exact time.
func (k *clock) start(now tier.Instant) {
	if k.approx.Load() != clockStopped {
		return
	}
	before := tier.Instant(k.asked.Swap(int64(now)))
	if now.Sub(before) > clockWorth {
		return
	}
	if k.approx.CompareAndSwap(clockStopped, int64(now)) {
		k.ticker.Reset(clockTick)
		if k.closed.Load() {
			k.ticker.Stop()
		}
	}
}

func (k *clock) tick() {
	if k.closed.Load() || !k.busy() {
		k.approx.Store(clockStopped)
		return
	}
	k.approx.Store(int64(tier.Now()))
	k.ticker.Reset(clockTick)
	if k.closed.Load() {
		k.ticker.Stop()
	}
}

// stop stops the clock for ever.
func (k *clock) stop() {
	k.closed.Store(true)
	k.ticker.Stop()
	k.approx.Store(clockStopped)
}
