package sieve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// hashed makes hashes of numbers, the same in each run.
func hashed(seed uint64) func(key uint64) uint64 {
	return func(key uint64) uint64 { return rand.NewPCG(key, seed).Uint64() }
}

func TestSketchNeverEstimatesTooLow(t *testing.T) {
	for _, keys := range []int{1, 2, 3, 7, 15, 16, 17, 100, 1000} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			s, hash := newSketch(keys), hashed(1)
			s.limit = 1 << 30 // no halving
			draw := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.1, 2, uint64(20*keys))
			truth := make(map[uint64]uint64)
			for range 20 * keys {
				key := draw.Uint64()
				truth[key]++
				s.add(hash(key))
				if got, want := s.estimate(hash(key)), min(truth[key], counterMax); got < want {
					t.Fatalf("key %d: estimate %d, want %d or more", key, got, want)
				}
			}
			for key, n := range truth {
				if got, want := s.estimate(hash(key)), min(n, counterMax); got < want || got > counterMax {
					t.Errorf("key %d: estimate %d, want from %d to %d", key, got, want, counterMax)
				}
			}
		})
	}
}

// What decides is whether the estimates are right at the size that it is made for:
// with as many counts as come between two halvings, over far more keys than the store
// holds.
func TestSketchIsRightMostly(t *testing.T) {
	for _, keys := range []int{500, 5000, 50_000} {
		s, hash := newSketch(keys), hashed(2)
		draw := rand.NewZipf(rand.New(rand.NewPCG(2, 2)), 1.01, 1, uint64(20*keys))
		truth := make(map[uint64]uint64)
		for range s.limit - 1 {
			key := draw.Uint64()
			truth[key]++
			s.add(hash(key))
		}
		var wrong, far, sum float64
		for key, n := range truth {
			if over := s.estimate(hash(key)) - min(n, counterMax); over > 0 {
				wrong++
				sum += float64(over)
				if over > 2 {
					far++
				}
			}
		}
		// A key that never came must not look like one that did.
		var unseen float64
		for key := range uint64(10_000) {
			unseen += float64(s.estimate(hash(1<<40+key))) / 10_000
		}
		n := float64(len(truth))
		t.Logf("for %d keys, %d counts of %.0f: %.1f %% are too high, %.2f %% by more than 2, by %.2f on average; one that never came: %.2f",
			keys, s.counts, n, 100*wrong/n, 100*far/n, sum/n, unseen)
		if wrong/n > 0.25 || far/n > 0.003 || sum/n > 0.27 || unseen > 0.6 {
			t.Error("want at most 25 %, 0.3 %, 0.27 and 0.6")
		}
	}
}

func TestSketchHalves(t *testing.T) {
	s, hash := newSketch(100), hashed(3)
	for key := range uint64(16) {
		for range key {
			s.add(hash(key))
		}
	}
	var before [16]uint64
	for key := range before {
		before[key] = s.estimate(hash(uint64(key)))
	}
	counts := s.counts
	s.halve()
	for key, was := range before {
		if got, want := s.estimate(hash(uint64(key))), was/2; got != want {
			t.Errorf("key %d: estimate %d after halving, want %d", key, got, want)
		}
	}
	if got, want := s.counts, counts/2; got != want {
		t.Errorf("counts = %d after halving, want %d", got, want)
	}

	// No counter's bits get into the one below.
	s.lines[0] = [8]uint64{0xffff_ffff_ffff_ffff, 0x1111_1111_1111_1111, 0x1234_5678_9abc_def0}
	s.halve()
	if got, want := s.lines[0], [8]uint64{0x7777_7777_7777_7777, 0, 0x0112_2334_4556_6778 &^ 0x8888_8888_8888_8888}; got != want {
		t.Errorf("line after halving = %x, want %x", got, want)
	}

	// It comes by itself, the first time after samplePerKey counts for each key, then
	// after half as many; and counts at the end of a counter are counted too.
	s = newSketch(8)
	halvings, last := 0, 0
	for i := range 10 * samplePerKey * 8 {
		was := s.counts
		if s.add(hash(1)); s.counts < was {
			halvings++
			if got, want := i-last, samplePerKey*8/2; halvings > 1 && got != want || halvings == 1 && i+1 != 2*want {
				t.Errorf("halving %d comes after %d counts", halvings, got)
			}
			last = i
			if got, want := s.estimate(hash(1)), uint64(counterMax/2); got != want {
				t.Errorf("estimate after the halving = %d, want %d", got, want)
			}
		}
	}
	if want := 19; halvings != want {
		t.Errorf("%d halvings, want %d", halvings, want)
	}
}

// A key that is asked for no more loses against one that is, however often it once was.
func TestSketchForgets(t *testing.T) {
	s, hash := newSketch(50), hashed(4)
	for range 100 {
		s.add(hash(1))
	}
	rnd := rand.New(rand.NewPCG(4, 4))
	for range 5 * s.limit {
		s.add(hash(rnd.Uint64N(1000) + 10))
		s.add(hash(2))
	}
	if once, now := s.estimate(hash(1)), s.estimate(hash(2)); once >= now {
		t.Errorf("estimates: %d for a key that was asked for once, %d for one of now", once, now)
	}
}

// A key has four counters, in different pairs of words of one line, and every counter is
// some key's.
func TestCountersOfAKey(t *testing.T) {
	const keys = 1000
	hash := hashed(5)
	var used [8][16]bool
	for key := range uint64(20_000) {
		s := newSketch(keys)
		s.add(hash(key))
		var pairs [4]int
		lines := 0
		for _, line := range s.lines {
			if line != [8]uint64{} {
				lines++
			}
			for word, counters := range line {
				for i := range used[word] {
					if n := counters >> (4 * i) & counterMax; n != 0 {
						used[word][i] = true
						pairs[word/2] += int(n)
					}
				}
			}
		}
		if lines != 1 || pairs != [4]int{1, 1, 1, 1} {
			t.Fatalf("one count of key %d is in %d lines, in pairs of words %v, want one in each of one line", key, lines, pairs)
		}
		if key > 2000 && !slices.Contains(flat(used), false) {
			return
		}
	}
	t.Errorf("counters that belong to no key: used %v", used)
}

func flat(used [8][16]bool) (all []bool) {
	for _, word := range used {
		all = append(all, word[:]...)
	}
	return all
}

// Keys of one shard, and of one bucket of its table, which are alike in some bits of
// their hashes, have no more counters in common than others.
func TestCountersAreSpread(t *testing.T) {
	for _, alike := range []uint64{0, 0xffff_0000_0000_0000, 0xffff, 0xff00_0000} {
		s := newSketch(1) // one line for all
		s.limit = 1 << 30 // no halving
		rnd := rand.New(rand.NewPCG(8, 8))
		const n = 20_000
		var got [8][16]int
		for range n {
			clear(s.lines)
			s.add(rnd.Uint64() &^ alike)
			for word, counters := range s.lines[0] {
				for i := range 16 {
					got[word][i] += int(counters >> (4 * i) & counterMax)
				}
			}
		}
		for word := range got {
			if least, most := slices.Min(got[word][:]), slices.Max(got[word][:]); least < n/32*8/10 || most > n/32*12/10 {
				t.Errorf("hashes alike in %#x: counters of word %d have from %d to %d keys, want about %d", alike, word, least, most, n/32)
			}
		}
	}
}

// Lines are shared out alike, for keys of one bucket of the table too.
func TestLinesAreSpread(t *testing.T) {
	const keys = 1600 // 100 lines
	for _, fixed := range []uint64{0, 0xffff_ffff_0000_0000, 0x0000_0000_ffff_ffff} {
		s := newSketch(keys)
		s.limit = 1 << 30
		rnd := rand.New(rand.NewPCG(6, 6))
		got := make([]int, len(s.lines))
		const each = 1000
		for range each * len(s.lines) {
			clear(s.lines)
			s.add(rnd.Uint64() &^ fixed)
			for i, line := range s.lines {
				if line != [8]uint64{} {
					got[i]++
				}
			}
		}
		if least, most := slices.Min(got), slices.Max(got); least < each*8/10 || most > each*12/10 {
			t.Errorf("without the bits %#x: lines have from %d to %d keys, want about %d", fixed, least, most, each)
		}
	}
}
