package coordinator

import (
	"math/rand/v2"
	"testing"
)

// The records of a shard are those of a map, whatever comes and goes, and nothing is
// kept of what has gone but a few spare ones.
func TestRecords(t *testing.T) {
	for _, hash := range []func(int) uint64{
		func(key int) uint64 { return uint64(key) * 0x9E3779B97F4A7C15 },
		func(int) uint64 { return 7 }, // all in one chain
	} {
		var s shard[int, int]
		held := map[int]*record[int, int]{}
		rnd := rand.New(rand.NewPCG(1, 2))
		for step := range 100_000 {
			key := rnd.IntN(1 + step%500)
			r := held[key]
			if got := s.find(hash(key), key); got != r {
				t.Fatalf("find(%d) = %p, want %p", key, got, r)
			}
			switch {
			case r == nil:
				r = s.hold(hash(key), key)
				if r.refs != 1 || r.flight != nil || r.writers != 0 || r.turn.taken {
					t.Fatalf("a new record: %+v", r)
				}
				held[key] = r
			case rnd.IntN(2) == 0:
				if got := s.hold(hash(key), key); got != r || r.refs != 2 {
					t.Fatalf("hold of a held key: got %p with %d, want %p with 2", got, r.refs, r)
				}
				s.drop(r)
			default:
				s.drop(r)
				delete(held, key)
			}
			if s.len() != len(held) {
				t.Fatalf("%d records, want %d", s.len(), len(held))
			}
			if s.spares > maxSpares {
				t.Fatalf("%d spare records, want at most %d", s.spares, maxSpares)
			}
		}
		n := 0
		s.each(func(r *record[int, int]) {
			n++
			if held[r.key] != r {
				t.Errorf("each came by a record of %d that is not held", r.key)
			}
		})
		if n != len(held) {
			t.Errorf("each came by %d records, want %d", n, len(held))
		}
		for _, r := range held {
			s.drop(r)
		}
		if s.len() != 0 || len(s.chains) > roomyShard {
			t.Errorf("at rest: %d records in %d chains", s.len(), len(s.chains))
		}
	}
}
