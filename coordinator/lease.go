package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Lease is the right to load a key, which one process at a time has (P1). It is kept
// in the lowest shared tier that can, as a mark under the key itself: a Set or Delete
// of anybody takes the mark's place, so that a load that began before cannot be
// stored after. A miss there costs one round trip more than without; a hit none.
//
// Processes that do not win it wait for what the winner stores, and look again and
// again with growing, jittered waits. One that has not renewed its lease for most of
// Life is taken for dead, and whoever notices first takes its place. When the tier does
// not answer, everybody loads for himself.
type Lease struct {
	// Life is how long a process that has died keeps others from having an answer,
	// beside what a load takes. Loads may take longer than Life, as leases are renewed.
	// Zero: no leases.
	Life time.Duration
}

const (
	// LeastLeaseLife leaves room for some round trips before a lease is over.
	LeastLeaseLife = 50 * time.Millisecond
	// slackShare is the share of Life, one in so many, that is for noticing.
	slackShare = 4
	// renewals is how often a lease is renewed in its life.
	renewals = 3
	// The waits between two looks at what another process loads grow from one to the
	// other.
	firstLook = 2 * time.Millisecond
	mostLook  = 50 * time.Millisecond
)

func (l Lease) validate() error {
	if l.Life != 0 && l.Life < LeastLeaseLife {
		return fmt.Errorf("lease Life %v: want at least %v, or zero for none", l.Life, LeastLeaseLife)
	}
	return nil
}

// lessor is the tier that keeps a cache's leases.
type lessor[K comparable, V any] struct {
	life  time.Duration // after which a holder is taken for dead: it leaves time to notice what another has loaded
	at    int           // which level it is
	level *level[K, V]
	store tier.Leaser[K]
}

// newLessor returns nil where there are no leases.
func newLessor[K comparable, V any](l Lease, levels []*level[K, V]) (*lessor[K, V], error) {
	if l.Life == 0 {
		return nil, nil
	}
	for i := len(levels) - 1; i >= 0; i-- {
		if s, ok := tier.AsLeaser(levels[i].store); ok && levels[i].swap != nil {
			return &lessor[K, V]{life: l.Life - l.Life/slackShare, at: i, level: levels[i], store: s}, nil
		}
	}
	return nil, errors.New("a lease needs a shared tier that can write on condition, such as Redis or memcached")
}

// held is a lease that a flight has.
type held struct {
	beside bool // the mark stands beside the key, not under it

	mu       sync.Mutex
	mark     tier.Version
	timer    *time.Timer   // renews it; nil once that is over
	renewing chan struct{} // closed when the renewal under way is over; nil without one
}

// winLease waits until the flight may load: it has the lease, or nobody could have it.
// If another process has stored an answer meanwhile it lands the flight with that.
func (c *Cache[K, V]) winLease(f *flight[K, V]) (landed bool) {
	l, x := c.lessor, &f.finding
	if l == nil {
		return false
	}
	defer func() {
		if !landed {
			f.beginLoad()
		}
	}()
	var watched tier.Version // the mark that we wait for
	began := tier.Now()
	since, wait := began, firstLook
	// Others may have it one after the other, and none bring an answer.
	patience := addDurations(c.hold(), l.life)
	for {
		seen, now := x.at(l.at), tier.Now()
		if !seen.known || now.Sub(began) > patience {
			return false
		}
		if seen.version != watched {
			watched, since, wait = seen.version, now, firstLook
		}
		left := l.life
		if seen.version.Leased() {
			left -= now.Sub(since)
		}
		won := false
		if !seen.version.Leased() || left <= 0 {
			var err error
			if won, err = c.takeLease(f, seen); err != nil {
				c.levelFailed(l.level, "lease", err)
				return false
			}
		}
		switch {
		case won && !f.lease.beside:
			return false // nobody has written since we looked
		case won:
			// Whoever had it before may have stored an answer after we looked.
		case seen.version.Leased() && left > 0 || seen.holds:
			c.counts.leaseWaits.Add(1)
			if !f.work.sleep(min(max(left, firstLook), jittered(wait))) {
				return false
			}
			wait = min(2*wait, mostLook)
		}
		c.lookAnew(f, c.local)
		if x.hit != nil {
			c.fill(&f.work, f)
			c.finish(f, x.asHit())
			return true
		}
		if won {
			return false
		}
	}
}

// takeLease puts a mark where the flight has seen none, or one of a process that must
// be dead, and keeps it alive.
func (c *Cache[K, V]) takeLease(f *flight[K, V], seen sighting) (won bool, err error) {
	h := &held{beside: seen.holds}
	if !h.beside {
		h.mark = seen.version
	}
	if h.mark, won, err = c.putMark(f, h.beside, h.mark, false); !won || err != nil {
		return false, err
	}
	c.counts.leases.Add(1)
	f.lease = h
	c.leaseStands(f)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(c.lessor.life/renewals, func() { c.renewLease(f, h) })
	return true, nil
}

// putMark puts a new mark in the place of what is there, which is the flight's own if it
// is to be renewed.
func (c *Cache[K, V]) putMark(f *flight[K, V], beside bool, old tier.Version, renew bool) (mark tier.Version, won bool, err error) {
	l := c.lessor
	err = l.level.bounded(&f.work, func(ctx context.Context) (err error) {
		switch {
		case beside:
			mark, won, err = l.store.LeaseBeside(ctx, f.key, l.life, old)
		case renew:
			mark, won, err = l.store.Renew(ctx, f.key, c.hold(), old)
		default:
			mark, won, err = l.store.Lease(ctx, f.key, c.hold(), old)
		}
		return err
	})
	return mark, won && err == nil, err
}

// renewLease puts a new mark in the place of the one before. If that is gone, the
// lease is lost, and what the flight loads will not be stored over what has come.
func (c *Cache[K, V]) renewLease(f *flight[K, V], h *held) {
	h.mu.Lock()
	if h.timer == nil || f.work.Err() != nil {
		h.mu.Unlock()
		return
	}
	old := h.mark
	h.renewing = make(chan struct{})
	h.mu.Unlock()

	var mark tier.Version
	var won bool
	err := guarded(func() (err error) {
		mark, won, err = c.putMark(f, h.beside, old, true)
		return err
	})
	if err != nil {
		c.levelFailed(c.lessor.level, "renew a lease", err) // the next try may come in time
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	if won {
		h.mark = mark
	}
	close(h.renewing)
	h.renewing = nil
	if h.timer != nil && (won || err != nil) {
		h.timer.Reset(c.lessor.life / renewals)
	}
}

// leaseStands tells the store step what it will find in the tier: the mark, if that
// stands under the key.
func (c *Cache[K, V]) leaseStands(f *flight[K, V]) {
	if h := f.lease; h != nil && !h.beside {
		f.finding.seen.at(c.lessor.at).version = h.mark
	}
}

// endRenewals is called before the flight stores, or gives the lease back. It waits for
// a renewal under way, as only that tells which mark stands.
func (h *held) endRenewals() {
	h.mu.Lock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	renewing := h.renewing
	h.mu.Unlock()
	if renewing != nil {
		<-renewing
	}
}

// beforeStore ends the renewals, so that the mark stays what it is.
func (c *Cache[K, V]) beforeStore(f *flight[K, V]) {
	if f.lease != nil {
		f.lease.endRenewals()
		c.leaseStands(f)
	}
}

// leaseOverwritten notes that something has taken the place of a mark under the key.
func (f *flight[K, V]) leaseOverwritten() {
	if f.lease != nil && !f.lease.beside {
		f.lease = nil
	}
}

// releaseLease gives back the lease of a flight whose answer is stored, or will not
// be, so that others need not wait for its end.
func (c *Cache[K, V]) releaseLease(f *flight[K, V]) {
	h, l := f.lease, c.lessor
	if h == nil {
		return
	}
	f.lease = nil
	h.endRenewals()
	err := l.level.bounded(context.Background(), func(ctx context.Context) error {
		if h.beside {
			return l.store.ReleaseBeside(ctx, f.key, h.mark)
		}
		return l.store.Release(ctx, f.key, c.hold(), h.mark)
	})
	if err != nil {
		c.levelFailed(l.level, "release a lease", err)
	}
}

// releaseLater is releaseLease for who must not wait.
func (c *Cache[K, V]) releaseLater(f *flight[K, V]) {
	if f.lease != nil && c.life.begin() {
		go func() {
			defer c.life.end()
			if err := guarded(func() error { c.releaseLease(f); return nil }); err != nil {
				c.levelFailed(c.lessor.level, "release a lease", err)
			}
		}()
	}
}

// guarded turns a panic of a store into an error, where nobody else would.
func guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return call()
}

// jittered returns a wait between half and one and a half of the given one, so that
// processes do not look in step.
func jittered(d time.Duration) time.Duration {
	return d/2 + time.Duration(draw()*float64(d))
}
