package sieve

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/terracecache/terrace/tier"
)

// An entry that somebody keeps is part of a larger object. That must not keep others,
// however they and it left the store.
func TestEntryThatIsKeptKeepsNoOther(t *testing.T) {
	type value struct{ _ [64]byte }
	const n = 100
	for _, c := range []struct {
		name  string
		leave func(s *Store[int, *value]) error
	}{
		{"Delete", func(s *Store[int, *value]) error {
			for i := range n {
				if err := s.Delete(ctx, i); err != nil {
					return err
				}
			}
			return nil
		}},
		{"update", func(s *Store[int, *value]) error {
			for i := range n {
				if err := s.Set(ctx, i, endless[*value](nil), tier.Forever); err != nil {
					return err
				}
			}
			return nil
		}},
		{"eviction", func(s *Store[int, *value]) error {
			// Often enough for the filter to prefer them.
			for i := range 50 * n {
				if err := s.Set(ctx, n+i%(2*n), endless[*value](nil), tier.Forever); err != nil {
					return err
				}
			}
			return nil
		}},
		{"Clear", func(s *Store[int, *value]) error { return s.Clear(ctx) }},
		{"Close", func(s *Store[int, *value]) error { return s.Close() }},
	} {
		for _, a := range []Admission{Filtered, Always} {
			t.Run(fmt.Sprint(c.name, " ", a), func(t *testing.T) {
				s := NewWith[int, *value](Options{Capacity: n, Shards: 1, Admission: a})
				values := make([]weak.Pointer[value], n)
				entries := make([]*tier.Entry[*value], n)
				for i := range n {
					v := new(value)
					values[i] = weak.Make(v)
					if err := s.Set(ctx, i, endless(v), tier.Forever); err != nil {
						t.Fatal(err)
					}
					var err error
					if entries[i], err = s.Get(ctx, i); entries[i] == nil || err != nil {
						t.Fatal(entries[i], err)
					}
				}
				kept := entries[n/2]
				clear(entries)
				if err := c.leave(s); err != nil {
					t.Fatal(err)
				}
				runtime.GC()
				still := 0
				for _, v := range values {
					if v.Value() != nil {
						still++
					}
				}
				if still != 1 || kept.Value() == nil {
					t.Errorf("%d values are still in memory, want only that of the entry that is kept", still)
				}
				runtime.KeepAlive(s)
			})
		}
	}
}
