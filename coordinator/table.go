package coordinator

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/terracecache/terrace/tier"
)

// table holds a record for each key that something is under way for: a flight, a
// write, a repeated write. A key at rest has none (L5). Its locks are held for a few
// instructions only, never across a loader or a call of a remote store (L6).
//
// It is also where the fence stands (W1). A write (Set, Delete, Expire, Clear)
// fences and detaches the key's flight when it begins and again when it ends. A
// fenced flight answers those who wait for it, but stores nothing; a detached flight
// is joined by nobody, so a read that begins after the write returned starts anew.
// A flight stores only while it holds the key's turn and is not fenced, and a write
// waits for the turn, so what a flight had begun to store is overwritten by the
// write that fenced it. A short look into the tiers in memory needs no flight: it
// has the turn from its beginning to its end.
type table[K comparable, V any] struct {
	cache    *Cache[K, V]
	keys     tier.Hasher[K]
	shards   []shard[K, V]
	clearing atomic.Int32 // Clears under way: flights that begin meanwhile are born fenced
	hangar   hangar[K, V]
}

func newTable[K comparable, V any](c *Cache[K, V]) *table[K, V] {
	n := 16
	for n < 8*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return &table[K, V]{cache: c, keys: tier.NewHasher[K](), shards: make([]shard[K, V], n)}
}

func (t *table[K, V]) shard(hash uint64) *shard[K, V] {
	return &t.shards[hash&uint64(len(t.shards)-1)]
}

// look is a short look into the tiers in memory, with the key's turn: no write of
// the key, nor a Clear, comes in between, so that what it finds it may store above.
type look[K comparable, V any] struct {
	shard  *shard[K, V]
	record *record[K, V]
}

// enter returns a look where nothing is under way for the key and there are tiers in
// memory to look into. Else it returns the key's flight and false when there is one to
// join, or a new flight and true; whoever gets a new one must bring it to its end.
func (t *table[K, V]) enter(key K) (l look[K, V], f *flight[K, V], leader bool) {
	hash := t.keys.Hash(key)
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(hash, key)
	if r == nil && t.cache.local > 0 && t.clearing.Load() == 0 {
		r = s.add(hash, key)
		r.refs++
		r.turn.take()
		return look[K, V]{s, r}, nil, false
	}
	if r == nil {
		r = s.add(hash, key)
	}
	r.refs++
	f, leader = t.join(s, r)
	return look[K, V]{}, f, leader
}

// end ends a look that has its answer.
func (l look[K, V]) end() {
	s := l.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	l.record.turn.give()
	s.drop(l.record)
}

// launchAfter ends a look that has found nothing: it returns a flight as enter does. As
// nobody could store anything since the look began, the flight need not look again.
func (t *table[K, V]) launchAfter(l look[K, V]) (f *flight[K, V], leader bool) {
	s := l.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	l.record.turn.give()
	return t.join(s, l.record)
}

// join returns the record's flight and false, or a new one and true. It takes over a
// hold of the record. The shard's lock is held.
func (t *table[K, V]) join(s *shard[K, V], r *record[K, V]) (f *flight[K, V], leader bool) {
	if f := r.flight; f != nil && f.announced && f.answer.entry.UsableUntil() <= tier.Now() {
		r.fence() // its answer is over while it is still being stored
	}
	if r.flight != nil {
		r.refs--
		r.flight.wanted()
		r.flight.holds++
		return r.flight, false
	}
	return t.launch(s, r), true
}

// refreshing reports whether the key has a flight, and starts one when there is
// none and permit agrees.
func (t *table[K, V]) refreshing(key K, permit func() bool) (f *flight[K, V], flying bool) {
	hash := t.keys.Hash(key)
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.find(hash, key); r != nil && r.flight != nil {
		return nil, true
	}
	if !permit() {
		return nil, false
	}
	return t.launch(s, s.hold(hash, key)), true
}

func (t *table[K, V]) launch(s *shard[K, V], r *record[K, V]) *flight[K, V] {
	f := t.hangar.get()
	f.cache, f.key, f.shard, f.record = t.cache, r.key, s, r
	f.holds = 1
	f.work.lane = byte(r.hash >> 16)
	f.fenced = r.writers > 0 || t.clearing.Load() > 0
	r.flight = f
	return f
}

// announce gives a flight's answer to those who wait, before the flight has ended.
func (t *table[K, V]) announce(f *flight[K, V], a answer[V]) {
	s := f.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.landed && !f.announced {
		f.announced = true
		f.answer = a
		f.wanted()
		close(f.done)
	}
}

// land ends a flight with its answer and reports whether this call was the one
// that did.
func (t *table[K, V]) land(f *flight[K, V], a answer[V]) bool {
	s := f.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.landed {
		return false
	}
	f.landed = true
	s.underway.remove(f)
	if !f.announced {
		f.answer = a
		if f.done != nil {
			close(f.done)
		}
	}
	if f.record.flight == f {
		f.record.flight = nil
	}
	s.drop(f.record)
	return true
}

// claim gives the flight the key's turn to write the tiers, unless a write
// overlapped with it or somebody has the turn.
func (f *flight[K, V]) claim() bool {
	s := f.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	return !f.fenced && !f.doubted && f.record.turn.take()
}

// claimWait is claim that waits for the turn.
func (f *flight[K, V]) claimWait(ctx context.Context) bool {
	if f.isFenced() {
		return false // and does not wait behind the writes that did it
	}
	if f.shard.takeTurn(ctx, f.record) != nil {
		return false
	}
	if f.isFenced() {
		f.shard.giveTurn(f.record)
		return false
	}
	return true
}

// isFenced reports whether a write overlapped with the flight.
func (f *flight[K, V]) isFenced() bool {
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	return f.fenced || f.doubted
}

// overtake is fence for a write of others, which a flight that has not begun to load need
// not give way to: it looks again.
func (r *record[K, V]) overtake() {
	if f := r.flight; f != nil && f.looking {
		f.doubted = true
		return
	}
	r.fence()
}

// fence keeps the record's flight from storing and from being joined. The shard's
// lock is held.
func (r *record[K, V]) fence() {
	if r.flight != nil {
		r.flight.fenced = true
		r.flight = nil
	}
}

// write is a Set, Delete or Expire of one key, from before it waits for its turn
// until its end.
type write[K comparable, V any] struct {
	shard  *shard[K, V]
	record *record[K, V]
	by     writer
}

// writer is who writes, as far as it matters to the key's flight.
type writer byte

const (
	byThis   writer = iota // this process does
	byOthers               // others have, and this process is told
	byFlight               // the flight has, which goes on
)

// beginWrite puts up the fence, and takes the key's turn if nobody has it.
func (t *table[K, V]) beginWrite(key K) (w write[K, V], hasTurn bool) { return t.begin(key, byThis) }

func (t *table[K, V]) begin(key K, by writer) (w write[K, V], hasTurn bool) {
	hash := t.keys.Hash(key)
	s := t.shard(hash)
	s.mu.Lock()
	w = write[K, V]{shard: s, record: s.hold(hash, key), by: by}
	if by != byFlight {
		w.record.writers++
	}
	w.fence()
	hasTurn = w.record.turn.take()
	s.mu.Unlock() // not deferred, which costs: nothing here panics
	return w, hasTurn
}

func (w write[K, V]) fence() {
	switch w.by {
	case byThis:
		w.record.fence()
	case byOthers:
		w.record.overtake()
	}
}

const (
	spins     = 8
	spinLoads = 128 // some tens of nanoseconds
)

// spin takes the key's turn if it comes free at once, and reports whether it did. A write of
// tiers in memory is over sooner than a goroutine has gone to sleep and been woken. It does
// not yield instead: where many goroutines want to run, its own turn to run would be far.
func (w write[K, V]) spin() bool {
	for range spins {
		for range spinLoads {
			spun.Load()
		}
		w.shard.mu.Lock()
		took := w.record.turn.take()
		w.shard.mu.Unlock()
		if took {
			return true
		}
	}
	return false
}

var spun atomic.Bool // is only read, so that the loop is not empty

// end puts up the fence for the flights that began meanwhile, and lets go, also of
// the turn if the write has it.
func (w write[K, V]) end(hasTurn bool) {
	w.shard.mu.Lock()
	if hasTurn {
		w.record.turn.give()
	}
	if w.by != byFlight {
		w.record.writers--
	}
	w.fence()
	w.shard.drop(w.record)
	w.shard.mu.Unlock() // not deferred, as in begin
}

// hold keeps the key's record for one who needs its turn without a fence, such as a
// write that is tried again: its fence stood when it was first tried.
func (t *table[K, V]) hold(key K) write[K, V] {
	hash := t.keys.Hash(key)
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	return write[K, V]{shard: s, record: s.hold(hash, key)}
}

// release ends what hold began.
func (w write[K, V]) release() {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	w.shard.drop(w.record)
}

// takeTurn waits for the key's turn to write the tiers. It is no lock that a reader
// would ever wait for, and no other key's writers do.
func (s *shard[K, V]) takeTurn(ctx context.Context, r *record[K, V]) error {
	s.mu.Lock()
	return r.turn.takeWait(ctx, &s.mu)
}

// takeTurnFor is takeTurn within a caller's context, which may be anybody's: its methods
// are not to be called with the lock.
func (s *shard[K, V]) takeTurnFor(ctx context.Context, r *record[K, V]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.takeTurn(ctx, r)
}

func (s *shard[K, V]) giveTurn(r *record[K, V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.turn.give()
}

// beginClear puts up the fence for all keys.
func (t *table[K, V]) beginClear() {
	t.clearing.Add(1)
	t.fenceAll()
}

// endClear puts it up for the flights that began meanwhile.
func (t *table[K, V]) endClear() {
	t.clearing.Add(-1)
	t.fenceAll()
}

// settle waits for those who have the turn of a key now. Behind the fence that
// beginClear has put up, none of them but a Set that runs beside the Clear can be
// followed by another.
func (t *table[K, V]) settle(ctx context.Context) error {
	for i := range t.shards {
		s := &t.shards[i]
		var busy []write[K, V]
		s.mu.Lock()
		s.each(func(r *record[K, V]) {
			if r.turn.taken {
				r.refs++
				busy = append(busy, write[K, V]{shard: s, record: r})
			}
		})
		s.mu.Unlock()
		var err error
		for _, w := range busy {
			if err == nil {
				if err = s.takeTurnFor(ctx, w.record); err == nil {
					s.giveTurn(w.record)
				}
			}
			w.release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *table[K, V]) fenceAll() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.each((*record[K, V]).fence)
		s.mu.Unlock()
	}
}

// len returns the number of records.
func (t *table[K, V]) len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.len()
		s.mu.Unlock()
	}
	return n
}
