package memtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/terracecache/terrace/backends/internal/size"
)

// Record is a value with something of everything.
type Record struct {
	ID     int
	Name   string
	Tags   []string
	Scores []float64
	Parent *Record
}

// Opener makes an empty store that holds so many bytes, and waits until what was written
// to it has settled.
type Opener[V any] func(maxBytes int64) (s Store[string, V], settle func())

// BytesInBudget checks that the heap that a full store takes is within a quarter of its
// budget, for values that are bytes.
func BytesInBudget(t *testing.T, open Opener[[]byte]) {
	for _, n := range []int{100, 1 << 10, 16 << 10} {
		budgets(t, fmt.Sprint("bytes ", n), open, func(int) []byte { return make([]byte, n) })
	}
}

// StringsInBudget is [BytesInBudget] for strings.
func StringsInBudget(t *testing.T, open Opener[string]) {
	budgets(t, "string", open, func(i int) string { return strings.Repeat("x", 20+i%200) })
}

// RecordsInBudget is [BytesInBudget] for pointers to structs.
func RecordsInBudget(t *testing.T, open Opener[*Record]) {
	budgets(t, "record", open, func(i int) *Record {
		return &Record{
			Name:   strings.Repeat("x", 10+i%50),
			Tags:   []string{strings.Repeat("y", 5+i%20), strings.Repeat("z", 7)},
			Scores: make([]float64, i%30),
			Parent: &Record{Name: strings.Repeat("x", 20)},
		}
	})
}

// MapsInBudget is [BytesInBudget] for maps.
func MapsInBudget(t *testing.T, open Opener[map[string]int]) {
	budgets(t, "map", open, func(i int) map[string]int {
		m := make(map[string]int)
		for j := range i % 40 {
			m[fmt.Sprint("name-", i, j)] = j
		}
		return m
	})
}

func budgets[V any](t *testing.T, name string, open Opener[V], value func(i int) V) {
	for _, budget := range []int64{8 << 20, 32 << 20} {
		t.Run(fmt.Sprintf("%s/%d MiB", name, budget>>20), func(t *testing.T) { inBudget(t, budget, open, value) })
	}
}

func inBudget[V any](t *testing.T, budget int64, open Opener[V], value func(i int) V) {
	if Race || testing.Short() {
		t.Skip("writes much more than has room")
	}
	beyond := size.Beyond[V]()
	before := heap()
	s, settle := open(budget)
	for offered, i := int64(0), 0; offered < 3*budget; i++ {
		v := value(i)
		offered += beyond(v) + 150
		MustSet(t, s, fmt.Sprintf("key-%012d", i), v)
	}
	settle()
	ratio := float64(heap()-before) / float64(budget)
	u := s.Usage()
	t.Logf("heap is %.2f of the budget, cost %.2f; %d entries", ratio, float64(u.Cost)/float64(budget), u.Entries)
	if ratio < 0.75 || ratio > 1.25 {
		t.Errorf("the heap is %.2f of the budget; %+v", ratio, u)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
