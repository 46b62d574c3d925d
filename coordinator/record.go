package coordinator

import "sync"

// record is what the table has of a key that something is under way for. It is
// guarded by its shard's mu. Under a text key it fills one cache line.
type record[K comparable, V any] struct {
	key     K
	hash    uint64
	flight  *flight[K, V] // the one to join; nil when there is none
	turn    turn          // to write the tiers
	refs    int32         // looks, flights, writes and repeated writes that need the record
	writers int32         // writes under way or waiting for the turn

	next *record[K, V] // in its chain, or among the spare ones
}

// shard holds the records of a part of the keys: the first in itself, as there is
// seldom another and cores then hand round few cache lines, the others in chains by hash.
type shard[K comparable, V any] struct {
	mu       sync.Mutex
	first    record[K, V]    // not in use without refs; under a text key with mu on one line but for next, which it has no use for
	chained  int             // records in chains
	chains   []*record[K, V] // a power of two of them; nil when there are no records
	spare    *record[K, V]   // a few for those to come, so that a look allocates none
	spares   int
	underway underway[K, V] // the flights of these keys
	_        [128]byte      // keeps neighbours off these cache lines, which are fetched in pairs
}

const (
	firstChains = 8
	// roomyShard is how many chains a shard keeps when it is empty; more are let go.
	roomyShard = 64
	maxSpares  = 8
)

func (s *shard[K, V]) chain(hash uint64) **record[K, V] {
	return &s.chains[hash>>32&uint64(len(s.chains)-1)] // the low bits chose the shard
}

// find returns the key's record, or nil. The lock is held.
func (s *shard[K, V]) find(hash uint64, key K) *record[K, V] {
	if r := &s.first; r.refs > 0 && r.hash == hash && r.key == key {
		return r
	}
	if s.chained == 0 {
		return nil
	}
	for r := *s.chain(hash); r != nil; r = r.next {
		if r.hash == hash && r.key == key {
			return r
		}
	}
	return nil
}

// hold returns the key's record, made where there is none, and counts the caller as
// one who needs it. The lock is held.
func (s *shard[K, V]) hold(hash uint64, key K) *record[K, V] {
	r := s.find(hash, key)
	if r == nil {
		r = s.add(hash, key)
	}
	r.refs++
	return r
}

// add makes a record, which the caller must count itself in. The lock is held.
func (s *shard[K, V]) add(hash uint64, key K) *record[K, V] {
	if r := &s.first; r.refs == 0 {
		r.key, r.hash = key, hash
		return r
	}
	if s.chained >= 2*len(s.chains) {
		s.grow()
	}
	r := s.spare
	if r != nil {
		s.spare = r.next
		s.spares--
	} else {
		r = new(record[K, V])
	}
	r.key, r.hash = key, hash
	first := s.chain(hash)
	r.next, *first = *first, r
	s.chained++
	return r
}

func (s *shard[K, V]) grow() {
	old := s.chains
	s.chains = make([]*record[K, V], max(firstChains, 2*len(old)))
	for _, r := range old {
		for r != nil {
			next, first := r.next, s.chain(r.hash)
			r.next, *first = *first, r
			r = next
		}
	}
}

// drop is the end of a hold. The lock is held.
func (s *shard[K, V]) drop(r *record[K, V]) {
	if r.refs--; r.refs > 0 {
		return
	}
	var none K
	r.key = none
	if r == &s.first {
		return
	}
	at := s.chain(r.hash)
	for *at != r {
		at = &(*at).next
	}
	*at = r.next
	if s.chained--; s.chained == 0 && len(s.chains) > roomyShard {
		s.chains = nil
	}
	if s.spares < maxSpares {
		r.next, s.spare = s.spare, r
		s.spares++
	}
}

// each calls f for all records. The lock is held.
func (s *shard[K, V]) each(f func(*record[K, V])) {
	if s.first.refs > 0 {
		f(&s.first)
	}
	for _, r := range s.chains {
		for ; r != nil; r = r.next {
			f(r)
		}
	}
}

// len returns the number of records. The lock is held.
func (s *shard[K, V]) len() int {
	if s.first.refs > 0 {
		return s.chained + 1
	}
	return s.chained
}
