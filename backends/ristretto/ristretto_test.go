package ristretto_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

var (
	_ tier.Store[string, int] = (*ristretto.Store[string, int])(nil)
	_ tier.Local              = (*ristretto.Store[string, int])(nil)
	_ tier.Clearer            = (*ristretto.Store[string, int])(nil)
	_ tier.Measurer           = (*ristretto.Store[string, int])(nil)
	_ tier.Validator          = (*ristretto.Store[string, int])(nil)
)

func open[K comparable, V any](t testing.TB, o ristretto.Options[K, V]) *ristretto.Store[K, V] {
	t.Helper()
	s := ristretto.New(o)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// each makes every entry cost 1.
func each[K comparable, V any](maxCost int64) ristretto.Options[K, V] {
	return ristretto.Options[K, V]{MaxCost: maxCost, Cost: func(K, *tier.Entry[V]) int64 { return 1 }}
}

func endless[V any](value V) *tier.Entry[V] {
	return tier.NewEntry(value, tier.Meta{FreshUntil: tier.Never, UsableUntil: tier.Never})
}

func mustSet[K comparable, V any](t testing.TB, s *ristretto.Store[K, V], key K, value V) {
	t.Helper()
	if err := s.Set(ctx, key, endless(value), tier.Forever); err != nil {
		t.Fatalf("Set(%v): %v", key, err)
	}
}

func mustDelete[K comparable, V any](t testing.TB, s *ristretto.Store[K, V], key K) {
	t.Helper()
	if err := s.Delete(ctx, key); err != nil {
		t.Fatalf("Delete(%v): %v", key, err)
	}
}

func mustGet[K comparable, V any](t testing.TB, s *ristretto.Store[K, V], key K) *tier.Entry[V] {
	t.Helper()
	e, err := s.Get(ctx, key)
	if err != nil {
		t.Fatalf("Get(%v): %v", key, err)
	}
	return e
}

// settled waits until what was written has been worked off.
func settled(t testing.TB, pending func() int64) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); pending() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d writes have not settled", pending())
		}
	}
}

// TestC63ReadYourWrites: with room for all, each Set shows at once and stays.
func TestC63ReadYourWrites(t *testing.T) {
	s := open(t, each[int, int](100_000))
	for i := range 10_000 {
		mustSet(t, s, i, i)
		if e := mustGet(t, s, i); e == nil || e.Value() != i {
			t.Fatalf("Get right after Set(%d) = %v", i, e)
		}
	}
	settled(t, s.Pending)
	for i := range 10_000 {
		if e := mustGet(t, s, i); e == nil || e.Value() != i {
			t.Fatalf("Get of %d after all settled = %v", i, e)
		}
	}
	if u := s.Usage(); u.Entries != 10_000 || u.Cost != 10_000 || u.Rejections != 0 || u.Evictions != 0 {
		t.Errorf("Usage = %+v, want 10,000 entries and none lost", u)
	}
}

// TestC63Burst: parallel Sets of more new keys than Ristretto's queue takes are
// all there, as there is room for them.
func TestC63Burst(t *testing.T) {
	const writers, share = 8, 12_500
	s := open(t, each[int, int](10*writers*share))
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range share {
				mustSet(t, s, w*share+i, i)
			}
		})
	}
	wg.Wait()
	settled(t, s.Pending)
	missing := 0
	for key := range writers * share {
		if mustGet(t, s, key) == nil {
			missing++
		}
	}
	if u := s.Usage(); missing > 0 || u.Rejections != 0 || u.Entries != writers*share {
		t.Errorf("%d of %d are missing; %+v", missing, writers*share, u)
	}
}

// TestC63NeverOlder has one writer for each key and several readers, under each
// kind of pressure. What a read gives must be at least as new as the last write
// that returned before it began; deletions are writes too.
func TestC63NeverOlder(t *testing.T) {
	for name, o := range map[string]ristretto.Options[int, version]{
		"room":     each[int, version](1000),
		"no room":  each[int, version](5),
		"one hash": {MaxCost: 1000, Cost: func(int, *tier.Entry[version]) int64 { return 1 }, Hash: func(int) uint64 { return 7 }},
		"growing":  {MaxCost: 300, Cost: func(_ int, e *tier.Entry[version]) int64 { return e.Value().n % 100 }},
	} {
		t.Run(name, func(t *testing.T) { neverOlder(t, open(t, o)) })
	}
}

// version is a value that tells whose it is and when it was written.
type version struct {
	key int
	n   int64
}

func neverOlder(t *testing.T, s *ristretto.Store[int, version]) {
	const writers, keysEach = 4, 8
	rounds := int64(8000)
	if testing.Short() {
		rounds = 1000
	}
	var written [writers * keysEach]atomic.Int64
	var writing, reading sync.WaitGroup
	var done atomic.Bool
	for w := range writers {
		writing.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for n := int64(1); n <= rounds; n++ {
				key := w*keysEach + rnd.IntN(keysEach)
				if rnd.IntN(3) == 0 {
					mustDelete(t, s, key)
				} else {
					mustSet(t, s, key, version{key, n})
				}
				written[key].Store(n)
				if e := mustGet(t, s, key); e != nil && e.Value() != (version{key, n}) {
					t.Errorf("key %d: its writer reads %+v after write %d", key, e.Value(), n)
					return
				}
			}
		})
	}
	for r := range 2 {
		reading.Go(func() {
			rnd := rand.New(rand.NewPCG(2, uint64(r)))
			for !done.Load() {
				key := rnd.IntN(len(written))
				atLeast := written[key].Load()
				e := mustGet(t, s, key)
				if e == nil {
					continue
				}
				if got := e.Value(); got.key != key || got.n < atLeast {
					t.Errorf("key %d: a read that began after write %d gives %+v", key, atLeast, got)
					return
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	settled(t, s.Pending)
	for key := range written {
		if e := mustGet(t, s, key); e != nil && e.Value() != (version{key, written[key].Load()}) {
			t.Errorf("key %d: at rest %+v, last write was %d", key, e.Value(), written[key].Load())
		}
	}
}

// TestC63Deleted: a Delete right after the Set of a new key holds, also once the
// queued Set is worked off.
func TestC63Deleted(t *testing.T) {
	s := open(t, each[int, int](100_000))
	for i := range 20_000 {
		mustSet(t, s, i, i)
		mustDelete(t, s, i)
		if e := mustGet(t, s, i); e != nil {
			t.Fatalf("Get right after Delete(%d) = %v", i, e.Value())
		}
	}
	settled(t, s.Pending)
	for i := range 20_000 {
		if e := mustGet(t, s, i); e != nil {
			t.Fatalf("%d reappeared", i)
		}
	}
	if u := s.Usage(); u.Entries != 0 || u.Cost != 0 {
		t.Errorf("Usage = %+v, want nothing held", u)
	}
}

// TestC63SecondSetOfANewKey: Ristretto keeps the first of two, though it says that
// it took both.
func TestC63SecondSetOfANewKey(t *testing.T) {
	s := open(t, each[int, int](100_000))
	for i := range 5000 {
		mustSet(t, s, i, 1)
		mustSet(t, s, i, 2)
	}
	settled(t, s.Pending)
	for i := range 5000 {
		if e := mustGet(t, s, i); e != nil && e.Value() != 2 {
			t.Fatalf("key %d holds %d, want the second value or nothing", i, e.Value())
		}
	}
}

// TestC66CollidingHash: no key ever gets another's value, whatever their hashes.
func TestC66CollidingHash(t *testing.T) {
	n := 80_000
	if testing.Short() {
		n = 20_000
	}
	for name, hash := range map[string]func(string) uint64{
		"all one": func(string) uint64 { return 0 },
		"length":  func(s string) uint64 { return uint64(len(s)) },
		"few":     func(s string) uint64 { return uint64(s[len(s)-1]) << 32 },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, ristretto.Options[string, string]{
				MaxCost: 50, Hash: hash, Cost: func(string, *tier.Entry[string]) int64 { return 1 },
			})
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(3, uint64(g)))
					for range n / 4 {
						key := fmt.Sprint("key ", rnd.IntN(200))
						switch rnd.IntN(8) {
						case 0:
							life := time.Duration(rnd.IntN(2000)) * time.Microsecond
							if err := s.Set(ctx, key, endless(key), life); err != nil {
								t.Error(err)
							}
						case 1:
							mustSet(t, s, key, key)
						case 2:
							mustDelete(t, s, key)
						default:
							if e := mustGet(t, s, key); e != nil && e.Value() != key {
								t.Errorf("Get(%q) gives the value of %q", key, e.Value())
								return
							}
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestC72CloseDuringUse(t *testing.T) {
	for range 20 {
		s := ristretto.New(each[int, int](100))
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for n := 0; ; n++ {
					_, getErr := s.Get(ctx, n%50)
					setErr := s.Set(ctx, n%50, endless(i), time.Hour)
					deleteErr := s.Delete(ctx, n%7)
					s.Usage()
					if errors.Is(getErr, tier.ErrClosed) && errors.Is(setErr, tier.ErrClosed) && errors.Is(deleteErr, tier.ErrClosed) {
						return
					}
				}
			})
		}
		wg.Go(func() { _ = s.Clear(ctx) })
		for range 3 {
			wg.Go(func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("Close again: %v", err)
		}
		if err := s.Clear(ctx); !errors.Is(err, tier.ErrClosed) {
			t.Errorf("Clear after Close: got error %v, want tier.ErrClosed", err)
		}
		if u := s.Usage(); u.Entries != 0 || u.Cost != 0 {
			t.Errorf("Usage after Close = %+v", u)
		}
	}
}

func TestCloseRightAfterManyWrites(t *testing.T) {
	for range 20 {
		s := ristretto.New(each[int, int](1000))
		for i := range 3000 {
			mustSet(t, s, i, i)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
}

// A Clear leaves nothing of what was written before it began, queued or not.
func TestClear(t *testing.T) {
	s := open(t, each[int, int](100_000))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for round := range 50 {
				key := func(i int) int { return w*1000 + i }
				for i := range 100 {
					mustSet(t, s, key(i), round)
				}
				if err := s.Clear(ctx); err != nil {
					t.Errorf("Clear: %v", err)
				}
				for i := range 100 {
					if e := mustGet(t, s, key(i)); e != nil {
						t.Errorf("Get(%d) after Clear = %d", key(i), e.Value())
						return
					}
				}
			}
		})
	}
	wg.Wait()
	settled(t, s.Pending)
	if u := s.Usage(); u.Entries != 0 || u.Cost != 0 || u.Evictions != 0 {
		t.Errorf("Usage = %+v, want nothing held and nothing evicted", u)
	}
	mustSet(t, s, 1, 1)
	settled(t, s.Pending)
	if mustGet(t, s, 1) == nil {
		t.Error("a Set after Clear is lost")
	}
}

func TestTooCostly(t *testing.T) {
	s := open(t, ristretto.Options[string, string]{
		MaxCost: 100, Cost: func(_ string, e *tier.Entry[string]) int64 { return int64(len(e.Value())) },
	})
	mustSet(t, s, "key", "older")
	settled(t, s.Pending)
	mustSet(t, s, "key", strings.Repeat("x", 101))
	if e := mustGet(t, s, "key"); e != nil {
		t.Errorf("Get after a Set that costs too much = %q, want nothing", e.Value())
	}
	settled(t, s.Pending)
	if e := mustGet(t, s, "key"); e != nil {
		t.Errorf("Get after it settled = %q, want nothing", e.Value())
	}
	if got := s.Usage().Rejections; got != 1 {
		t.Errorf("Rejections = %d, want 1", got)
	}
	mustSet(t, s, "empty", "") // costs 0, which counts as 1
	settled(t, s.Pending)
	if got := s.Usage().Cost; got != 1 {
		t.Errorf("Cost = %d, want 1", got)
	}
}

// What loses against what is used more leaves nothing older behind, and is counted.
func TestRejected(t *testing.T) {
	s := open(t, each[int, int](10))
	for i := range 10 {
		mustSet(t, s, i, i)
	}
	settled(t, s.Pending)
	for range 10_000 {
		for i := range 10 {
			mustGet(t, s, i)
		}
	}
	time.Sleep(10 * time.Millisecond) // the use is counted in the background
	for i := range 1000 {
		mustSet(t, s, 1000+i, i)
		settled(t, s.Pending)
		if e := mustGet(t, s, 1000+i); e != nil && e.Value() != i {
			t.Fatalf("key %d holds %d", 1000+i, e.Value())
		}
	}
	// Under the race detector Ristretto counts next to no use and rejects nothing.
	u := s.Usage()
	if u.Rejections+u.Evictions != 1000 {
		t.Errorf("Usage = %+v, want 1000 rejections and evictions together", u)
	}
	if u.Entries != 10 || u.Cost != 10 {
		t.Errorf("Usage = %+v, want 10 entries", u)
	}
}

// Ristretto takes an update whatever it costs, and makes room only when a new key
// comes.
func TestEntriesThatGrowStayInBounds(t *testing.T) {
	s := open(t, ristretto.Options[int, int]{MaxCost: 1000, Cost: func(_ int, e *tier.Entry[int]) int64 { return int64(e.Value()) }})
	for i := range 1000 {
		mustSet(t, s, i, 1)
	}
	settled(t, s.Pending)
	for i := range 1000 {
		mustSet(t, s, i, 500)
	}
	settled(t, s.Pending)
	if u := s.Usage(); u.Cost > u.MaxCost || u.Cost < 500 {
		t.Errorf("Usage = %+v, want a cost within MaxCost, and something held", u)
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []ristretto.Options[string, int]{
		{}, {MaxCost: -1}, {MaxCost: math.MinInt64}, {MaxCost: 1, NumCounters: -1}, {MaxCost: 1, NumCounters: math.MaxInt64},
	} {
		s := ristretto.New(o)
		want := s.Validate()
		if want == nil {
			t.Errorf("%+v: Validate gives no error", o)
		}
		if _, err := s.Get(ctx, "key"); !errors.Is(err, want) {
			t.Errorf("%+v: Get gives error %v, want %v", o, err, want)
		}
		if err := s.Set(ctx, "key", endless(1), time.Hour); !errors.Is(err, want) {
			t.Errorf("%+v: Set gives error %v, want %v", o, err, want)
		}
		if err := s.Delete(ctx, "key"); !errors.Is(err, want) {
			t.Errorf("%+v: Delete gives error %v, want %v", o, err, want)
		}
		if err := s.Clear(ctx); !errors.Is(err, want) {
			t.Errorf("%+v: Clear gives error %v, want %v", o, err, want)
		}
		s.Usage()
		if err := s.Close(); err != nil {
			t.Errorf("%+v: Close: %v", o, err)
		}
	}
}

type point struct {
	X, Y int
	Name string
}

func TestGetDoesNotAllocate(t *testing.T) {
	getAllocates(t, "a key that is a string")
	getAllocates(t, 12345)
	getAllocates(t, point{1, 2, "name"})
}

func getAllocates[K comparable](t *testing.T, key K) {
	t.Helper()
	s := open(t, each[K, int](100))
	mustSet(t, s, key, 1)
	settled(t, s.Pending)
	get := func() {
		if e, err := s.Get(ctx, key); e == nil || err != nil {
			t.Fatal(e, err)
		}
	}
	// Ristretto allocates a new buffer for each 64 reads.
	if n := testing.AllocsPerRun(1000, get); n != 0 {
		t.Errorf("Get of a %T allocates %v times", key, n)
	}
}

// However large values are, a Delete needs no room for one.
func TestDeleteTakesNoRoomForAValue(t *testing.T) {
	type large [1 << 16]byte
	s := open(t, each[int, large](100))
	const n = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for key := range n {
		mustDelete(t, s, key)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / n; got > 1<<12 {
		t.Errorf("a Delete allocates %d bytes", got)
	}
}

func TestNaN(t *testing.T) {
	s := open(t, each[float64, int](100))
	for range 100 {
		if err := s.Set(ctx, math.NaN(), endless(1), time.Hour); !errors.Is(err, tier.ErrBadKey) {
			t.Fatalf("Set of NaN: got error %v, want tier.ErrBadKey", err)
		}
		mustDelete(t, s, math.NaN())
	}
	if e := mustGet(t, s, math.NaN()); e != nil {
		t.Error("NaN is held")
	}
	if got := s.Pending(); got != 0 {
		t.Errorf("%d records of NaN", got)
	}
}

// An interface satisfies comparable and can hold what panics when compared.
func TestKeyThatCannotBeCompared(t *testing.T) {
	s := open(t, each[any, int](100))
	bad := any([]int{1})
	if _, err := s.Get(ctx, bad); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("Get: got error %v, want tier.ErrBadKey", err)
	}
	if err := s.Set(ctx, bad, endless(1), time.Hour); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("Set: got error %v, want tier.ErrBadKey", err)
	}
	if err := s.Delete(ctx, bad); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("Delete: got error %v, want tier.ErrBadKey", err)
	}
	mustSet[any](t, s, "1", 1)
	mustSet[any](t, s, 1, 2)
	if e := mustGet[any](t, s, "1"); e == nil || e.Value() != 1 {
		t.Errorf("Get = %v", e)
	}
}

// In a bubble the store settles without the clock moving, gives back memory when
// lives end, and lets the bubble come to rest.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, each[string, int](100))
		start := tier.Now()
		ttls := []time.Duration{1, time.Millisecond, time.Second, time.Hour, 400 * 24 * time.Hour, math.MaxInt64 - 1, tier.Forever}
		for _, ttl := range ttls {
			if err := s.Set(ctx, ttl.String(), endless(1), ttl); err != nil {
				t.Fatal(err)
			}
			if e := mustGet(t, s, ttl.String()); e == nil || e.UsableUntil() != start.Add(ttl) {
				t.Errorf("ttl %v: got %+v, want usable until %v", ttl, e, start.Add(ttl))
			}
		}
		for _, ttl := range []time.Duration{0, -1, math.MinInt64} {
			mustSet(t, s, "key", 1)
			if err := s.Set(ctx, "key", endless(2), ttl); err != nil {
				t.Fatal(err)
			}
			if e := mustGet(t, s, "key"); e != nil {
				t.Errorf("ttl %v: got %d, want nothing", ttl, e.Value())
			}
		}
		synctest.Wait()
		if got := s.Pending(); got != 0 || tier.Now() != start {
			t.Errorf("%d records, %v later", got, tier.Now().Sub(start))
		}
		if got := s.Usage().Entries; got != int64(len(ttls)) {
			t.Errorf("holds %d entries, want %d", got, len(ttls))
		}
		time.Sleep(time.Minute)
		for _, ttl := range ttls {
			if held := mustGet(t, s, ttl.String()) != nil; held != (ttl > time.Minute) {
				t.Errorf("ttl %v: held after a minute: %v", ttl, held)
			}
		}
		if u := s.Usage(); u.Entries != 4 || u.Cost != 4 || u.Evictions != 0 {
			t.Errorf("Usage = %+v, want the dead given back and not counted as evicted", u)
		}
		time.Sleep(2 * time.Hour)
		if u := s.Usage(); u.Entries != 3 {
			t.Errorf("Usage = %+v, want 3 entries", u)
		}
	})
}

func TestEstimate(t *testing.T) {
	small := open(t, ristretto.Options[string, []byte]{MaxCost: 1 << 20})
	mustSet(t, small, "key", []byte{})
	settled(t, small.Pending)
	base := small.Usage().Cost
	mustSet(t, small, "another key", make([]byte, 1000))
	settled(t, small.Pending)
	if got, want := small.Usage().Cost-base, base+8+1024; got != want { // allocated in such steps
		t.Errorf("1000 bytes under a key 8 bytes longer cost %d, want %d", got, want)
	}
	mustSet(t, small, "key", make([]byte, 1<<20))
	if e := mustGet(t, small, "key"); e != nil {
		t.Error("a value of MaxCost bytes is held")
	}
}

// A Set of a key that is held changes what is held, without a word to Ristretto, and is
// seen at once; where the cost or the kind of end changes it goes the long way. Either
// way the last write counts, and Usage agrees.
func TestSetOfAHeldKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ristretto.New(ristretto.Options[string, int]{MaxCost: 1000, Cost: func(_ string, e *tier.Entry[int]) int64 { return int64(1 + e.Value()/100) }})
		defer s.Close()
		until := func(d time.Duration, v int) *tier.Pair[string, int] {
			at := tier.Never
			if d != tier.Forever {
				at = tier.Now().Add(d)
			}
			return tier.NewPair("key", v, tier.Meta{UsableUntil: at})
		}
		settle := func() { settled(t, s.Pending) }
		set := func(pair *tier.Pair[string, int]) {
			t.Helper()
			if err := s.SetPair(ctx, pair, tier.Forever); err != nil {
				t.Fatal(err)
			}
			if got, _ := s.Get(ctx, "key"); got != pair.Entry() {
				t.Fatalf("after Set of %v: got %v", pair.Entry().Value(), got)
			}
		}
		set(until(time.Minute, 1))
		settle()
		for i, c := range []struct {
			pair  *tier.Pair[string, int]
			short bool
		}{
			{until(time.Minute, 2), true},
			{until(time.Hour, 3), true},
			{until(time.Second, 4), false},    // dies sooner than is noted
			{until(time.Minute, 250), false},  // costs more
			{until(tier.Forever, 251), false}, // never dies
			{until(tier.Forever, 252), true},
			{until(time.Minute, 253), false},
		} {
			set(c.pair)
			if got := s.Pending() == 0; got != c.short {
				t.Errorf("step %d: the short way: %v, want %v", i, got, c.short)
			}
			settle()
			if got, _ := s.Get(ctx, "key"); got != c.pair.Entry() {
				t.Fatalf("step %d: when settled: got %v, want %v", i, got, c.pair.Entry().Value())
			}
			if u := s.Usage(); u.Entries != 1 || u.Cost != int64(1+c.pair.Entry().Value()/100) {
				t.Errorf("step %d: usage %+v", i, u)
			}
		}
		time.Sleep(2 * time.Minute)
		settle()
		if u := s.Usage(); u.Entries != 0 || u.Cost != 0 {
			t.Errorf("after its end: usage %+v", u)
		}
	})
}
