package ristretto_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/tier"
)

// ofMemtest makes stores for the tests of memtest. There are no shards.
func ofMemtest[K comparable, V any](size memtest.Size) memtest.Store[K, V] {
	return ristretto.New(each[K, V](int64(size.Capacity)))
}

func TestResize(t *testing.T) {
	memtest.Resize(t, ofMemtest[int, memtest.Version], func(s memtest.Store[int, memtest.Version]) {
		settled(t, s.(*ristretto.Store[int, memtest.Version]).Pending)
	})
}

func TestEviction(t *testing.T) {
	if got := tier.EvictionOf(open(t, each[int, int](1))); got != "tinylfu" {
		t.Errorf("eviction %q", got)
	}
}

// What is used most is what mostly stays when a store shrinks, without a write.
func TestShrinkingKeepsWhatIsUsed(t *testing.T) {
	s := open(t, each[int, int](10_000))
	for i := range 10_000 {
		mustSet(t, s, i, i)
	}
	settled(t, s.Pending)
	for range 100 {
		for i := range 100 {
			mustGet(t, s, i)
		}
		time.Sleep(time.Millisecond) // the use is counted in the background, or dropped
	}
	if err := s.Resize(1000); err != nil {
		t.Fatal(err)
	}
	settled(t, s.Pending)
	u := s.Usage()
	if u.Cost > 1000 || u.Cost < 900 || u.Entries != u.Cost || u.Evictions != 10_000-u.Entries || u.Rejections != 0 {
		t.Errorf("%+v, want 1000 entries left and the others evicted", u)
	}
	left := 0
	for i := range 100 {
		if mustGet(t, s, i) != nil {
			left++
		}
	}
	if left < 50 && !memtest.Race { // under which next to no use is counted
		t.Errorf("%d of 100 entries in use are left", left)
	}
}

// An entry that costs more than all may now goes, and nothing else needs to.
func TestShrinkingBelowAnEntry(t *testing.T) {
	s := open(t, ristretto.Options[int, int]{MaxCost: 1000, Cost: func(_ int, e *tier.Entry[int]) int64 { return int64(e.Value()) }})
	mustSet(t, s, 1, 500)
	settled(t, s.Pending)
	if err := s.Resize(499); err != nil {
		t.Fatal(err)
	}
	settled(t, s.Pending)
	if u := s.Usage(); u.Cost != 0 || u.Entries != 0 || u.Evictions != 1 {
		t.Errorf("%+v, want the one entry evicted", u)
	}
}

func TestResizeOfWhatNeverWasRight(t *testing.T) {
	s := ristretto.New(ristretto.Options[int, int]{})
	if err := s.Resize(10); err == nil || !errors.Is(err, s.Validate()) {
		t.Errorf("error %v, want %v", err, s.Validate())
	}
}

func TestResizeToTheGreatest(t *testing.T) {
	s := open(t, ristretto.Options[int, int]{MaxCost: 1 << 20})
	if err := s.Resize(math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		mustSet(t, s, i, i)
	}
	settled(t, s.Pending)
	if u := s.Usage(); u.Entries != 10_000 || u.Rejections != 0 || u.MaxCost != math.MaxInt64 {
		t.Errorf("%+v", u)
	}
}
