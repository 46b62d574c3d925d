package index

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// pair returns one whose value is the hash of its key.
func pair(key int, hash uint64) *tier.Pair[int, uint64] {
	return tier.NewPair(key, hash, tier.Meta{})
}

func hashOf(p *tier.Pair[int, uint64]) uint64 { return p.Entry().Value() }

func find[K comparable, V any](t *Table[K, V], hash uint64, key K) *tier.Pair[K, V] {
	p, _ := t.Find(hash, key)
	return p
}

// takeOut takes out a pair that is there.
func takeOut(t *Table[int, uint64], p *tier.Pair[int, uint64]) {
	_, place := t.Find(hashOf(p), p.Key())
	t.Remove(hashOf(p), place)
}

// grown returns a table for more with what is in another.
func grown(t *testing.T, from *Table[int, uint64], room int) *Table[int, uint64] {
	t.Helper()
	to := NewTable[int, uint64](room, from.each)
	from.Each(func(p Place) {
		pair := from.At(p)
		mustBeAt(t, to, to.Insert(hashOf(pair), pair), pair)
	})
	return to
}

// hashAt returns a hash whose home in the table is the given bucket.
func hashAt[K comparable, V any](t *Table[K, V], home int, tag uint64) uint64 {
	n := uint64(len(t.buckets))
	return (uint64(home)<<32+n-1)/n<<32 | tag&0x7f<<24
}

// hashes are ways to lay keys out that a table must bear, the worst included.
var hashes = []struct {
	name string
	hash func(t *Table[int, uint64], key int) uint64
}{
	{"spread", func(_ *Table[int, uint64], key int) uint64 {
		return rand.NewPCG(uint64(key), 1).Uint64()
	}},
	{"all to the first bucket", func(t *Table[int, uint64], key int) uint64 {
		return hashAt(t, 0, uint64(key))
	}},
	{"all to the last bucket, and round", func(t *Table[int, uint64], key int) uint64 {
		return hashAt(t, len(t.buckets)-1, uint64(key))
	}},
	{"some to the last bucket, and some to the first", func(t *Table[int, uint64], key int) uint64 {
		return hashAt(t, (len(t.buckets)-1)*(key%2), uint64(key))
	}},
	{"one tag", func(t *Table[int, uint64], key int) uint64 {
		return hashAt(t, key%len(t.buckets), 5)
	}},
	{"one hash", func(*Table[int, uint64], int) uint64 { return 0xdead_beef_dead_beef }},
	{"no bit", func(*Table[int, uint64], int) uint64 { return 0 }},
	{"all bits", func(*Table[int, uint64], int) uint64 { return 1<<64 - 1 }},
	{"tags next to each other", func(t *Table[int, uint64], key int) uint64 {
		return hashAt(t, 0, uint64(key%2)) // a match makes the byte above look like one
	}},
}

func mustHold(t *testing.T, tab *Table[int, uint64], held map[int]*tier.Pair[int, uint64]) {
	t.Helper()
	n, err := tab.Check(func(p Place) uint64 { return hashOf(tab.At(p)) })
	if err != nil {
		t.Fatal(err)
	}
	if n != len(held) {
		t.Fatalf("holds %d pairs, want %d", n, len(held))
	}
	for key, want := range held {
		if got := find(tab, hashOf(want), key); got != want {
			t.Fatalf("key %d: got pair %p, want %p", key, got, want)
		}
	}
}

func mustBeAt(t *testing.T, tab *Table[int, uint64], place Place, want *tier.Pair[int, uint64]) {
	t.Helper()
	if got := tab.At(place); got != want {
		t.Fatalf("key %d: put in place %d, where %p is", want.Key(), place, got)
	}
}

// mustBeEmpty looks for tombstones.
func mustBeEmpty(t *testing.T, tab *Table[int, uint64]) {
	t.Helper()
	mustHold(t, tab, nil)
	for i := range tab.buckets {
		if tags := tab.buckets[i].tags.Load(); tags != 0 && tags != passedMax<<passedBit {
			t.Errorf("bucket %d of an empty table: %#x is left", i, tags)
		}
	}
}

func TestTableHoldsWhatItWasGiven(t *testing.T) {
	for _, h := range hashes {
		t.Run(h.name, func(t *testing.T) {
			for _, room := range []int{1, 2, 5, 6, 7, 42, 100, 400} {
				tab := NewTable[int, uint64](room, 3)
				held := make(map[int]*tier.Pair[int, uint64])
				rnd := rand.New(rand.NewPCG(3, uint64(room)))
				each := 1 + room/4
				for step := range 2000 {
					key := rnd.IntN(2 * room)
					hash := h.hash(tab, key)
					n := find(tab, hash, key)
					if n != held[key] {
						t.Fatalf("room %d, step %d, key %d: got pair %p, want %p", room, step, key, n, held[key])
					}
					// Fills up first, then empties, and again.
					adds := step/(4*room)%2 == 0
					switch {
					case n == nil && len(held) < room && (adds || rnd.IntN(4) == 0):
						held[key] = pair(key, hash)
						mustBeAt(t, tab, tab.Insert(hash, held[key]), held[key])
					case n != nil && rnd.IntN(3) == 0: // as an update does
						held[key] = pair(key, hash)
						_, place := tab.Find(hash, key)
						if tab.Replace(place, held[key], held[key]) || !tab.Replace(place, n, held[key]) {
							t.Fatalf("room %d, step %d, key %d: not replaced by who knows what is there, or by another", room, step, key)
						}
					case n != nil && !adds:
						takeOut(tab, n)
						delete(held, key)
					}
					if step%each == 0 {
						mustHold(t, tab, held)
					}
				}
				for key, n := range held {
					got := find(tab, hashOf(n), key)
					if got == nil {
						t.Fatalf("room %d: key %d is lost", room, key)
					}
					takeOut(tab, got)
					delete(held, key)
				}
				mustBeEmpty(t, tab)
			}
		})
	}
}

func TestTableGrows(t *testing.T) {
	for _, h := range hashes {
		t.Run(h.name, func(t *testing.T) {
			tab := NewTable[int, uint64](1, 3)
			held := make(map[int]*tier.Pair[int, uint64])
			for key := range 300 {
				if len(held) == tab.room {
					tab = grown(t, tab, 2*tab.room+key%3)
					mustHold(t, tab, held)
				}
				held[key] = pair(key, h.hash(tab, key))
				tab.Insert(hashOf(held[key]), held[key])
			}
			mustHold(t, tab, held)
		})
	}
}

// A count that has reached its end stays there, whatever leaves, and a search that
// it misleads ends all the same.
func TestPassedOverByMoreThanCanBeCounted(t *testing.T) {
	const room = 700
	tab := NewTable[int, uint64](room, 3)
	held := make(map[int]*tier.Pair[int, uint64])
	at3 := func(key int) uint64 {
		hash := hashAt(tab, 3, uint64(key))
		for tab.after(3, 0, hash) == 3 { // it would be passed twice
			hash++
		}
		return hash
	}
	add := func(from, to int) {
		for key := from; key < to; key++ {
			held[key] = pair(key, at3(key))
			tab.Insert(hashOf(held[key]), held[key])
		}
	}
	remove := func(keep int) {
		t.Helper()
		for key, n := range held {
			if key%keep == 0 {
				continue
			}
			got := find(tab, hashOf(n), key)
			if got != n {
				t.Fatalf("key %d: got pair %p, want %p", key, got, n)
			}
			takeOut(tab, n)
			delete(held, key)
		}
	}
	counts := func() (saturated int) {
		for i := range tab.buckets {
			if tab.buckets[i].tags.Load()>>passedBit == passedMax {
				saturated++
			}
		}
		return saturated
	}

	// 255 is where it tips: one of 254 can still be taken back.
	add(0, perBucket+passedMax-1)
	if got := counts(); got != 0 {
		t.Fatalf("%d buckets are at the end of their count, want none yet", got)
	}
	mustHold(t, tab, held)
	remove(1 << 30)
	delete(held, 0)
	takeOut(tab, find(tab, at3(0), 0))
	mustBeEmpty(t, tab)

	add(0, room)
	full := counts()
	if full == 0 {
		t.Fatal("no bucket is at the end of its count")
	}
	mustHold(t, tab, held)
	remove(9) // leaves some far from home
	mustHold(t, tab, held)
	if got := counts(); got != full {
		t.Errorf("%d buckets at the end of their count after removals, want still %d", got, full)
	}
	add(1000, 1100)
	mustHold(t, tab, held)
	large := grown(t, tab, 2*room)
	mustHold(t, large, held)
	for i := range large.buckets {
		if got := large.buckets[i].tags.Load() >> passedBit; got == passedMax {
			t.Errorf("bucket %d took the count over into the grown table", i)
		}
	}

	for i := range tab.buckets { // the worst: nothing says where a search may stop
		tab.buckets[i].tags.Or(passedMax << passedBit)
	}
	mustHold(t, tab, held)
	for home := range tab.buckets {
		if n := find(tab, hashAt(tab, home, 1), -1); n != nil {
			t.Fatalf("found key %d for one that is not there", n.Key())
		}
	}
}

// matches must find each place that has the tag; one too many is allowed.
func TestMatches(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		tags, tag := rnd.Uint64(), 0x80|rnd.Uint64()&0x7f
		for at := range perBucket {
			switch rnd.IntN(4) {
			case 0:
				tags &^= 0xff << (8 * at)
			case 1:
				tags = tags&^(0xff<<(8*at)) | tag<<(8*at)
			}
		}
		got := new(Table[int, int]).matches(tags, tag)
		if got&^pairTops != 0 {
			t.Fatalf("matches(%#x, %#x) = %#x has bits beside the pairs' tops", tags, tag, got)
		}
		for at := range perBucket {
			has := tags>>(8*at)&0xff == tag
			if found := got>>(8*at)&0x80 != 0; has && !found {
				t.Fatalf("matches(%#x, %#x) = %#x misses place %d", tags, tag, got, at)
			}
		}
	}
}

// The buckets must be filled alike for any number of them, or some searches are long.
func TestHomesAreSpread(t *testing.T) {
	for _, n := range []int{1, 3, 7, 100} {
		tab := &Table[int, uint64]{buckets: make([]bucket[int, uint64], n)}
		got := make([]int, n)
		rnd := rand.New(rand.NewPCG(1, uint64(n)))
		const each = 1000
		for range n * each {
			got[tab.home(rnd.Uint64())]++
		}
		if least, most := slices.Min(got), slices.Max(got); least < each*8/10 || most > each*12/10 {
			t.Errorf("%d buckets have from %d to %d homes, want about %d", n, least, most, each)
		}
		for home := range n {
			if got := tab.home(hashAt(tab, home, 0)); got != uint64(home) {
				t.Errorf("hashAt(%d of %d) has the home %d", home, n, got)
			}
		}
	}
}

func TestTableHasRoom(t *testing.T) {
	for room := 1; room < 3000; room++ {
		for each := 1; each < 9; each++ {
			want := room + room/each
			if got := perBucket * len(NewTable[int, uint64](room, each).buckets); got <= room || got > want+perBucket {
				t.Errorf("a table for %d pairs has %d places, want about %d, and one to spare", room, got, want)
			}
		}
	}
}

// Numbers of places leave none out, as arrays by number are no longer than that.
func TestPlacesAreNumbered(t *testing.T) {
	tab := NewTable[int, int](100, 2)
	next := uint(0)
	for i := range tab.buckets {
		for at := range tab.buckets[i].pairs {
			p := placeOf(uint64(i), uint(at))
			if p.Number() != next || p.bucket() != uint(i) || p.at() != uint(at) || tab.slot(p) != &tab.buckets[i].pairs[at] {
				t.Fatalf("place %d in bucket %d: number %d, want %d; in bucket %d at %d", at, i, p.Number(), next, p.bucket(), p.at())
			}
			next++
		}
	}
	if last := tab.Last(); last.Number() != next-1 {
		t.Errorf("the last place is %d, number %d, want %d", last, last.Number(), next-1)
	}
	if next != uint(tab.Places()) {
		t.Errorf("%d places, want %d", tab.Places(), next)
	}
}

// A place is a number of 32 bits, and the largest table must have one for each pair.
func TestMostRoom(t *testing.T) {
	for each := 1; each < 9; each++ {
		buckets := uint64(MostRoom+MostRoom/each+perBucket) / perBucket
		if last := buckets * (perBucket + 1); last >= 1<<32 {
			t.Errorf("a place more for each %d pairs: the last of a table's places would be %d", each, last)
		}
	}
}

// What is sealed is read as before, and nobody who has seen what was there replaces it.
func TestSeal(t *testing.T) {
	tab := NewTable[int, uint64](100, 2)
	for key := range 100 {
		hash := rand.NewPCG(uint64(key), 1).Uint64()
		p := tab.Insert(hash, pair(key, hash))
		was := tab.At(p)
		if got := tab.Seal(p); got != was {
			t.Errorf("key %d: sealed %p, was %p", key, got, was)
		}
		left, place := tab.Find(hash, key)
		if place != p || left == was || left.Key() != key || left.Entry().Value() != hash {
			t.Errorf("key %d: %v is left at %d of %v at %d, want a copy there", key, left, place, was, p)
		}
		if tab.Replace(p, was, pair(key, 0)) || tab.At(p) != left {
			t.Errorf("key %d: replaced in a place that is sealed", key)
		}
	}
}
