package size_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/internal/size"
)

type user struct {
	ID      int
	Name    string
	Emails  []string
	Tags    map[string]int
	Manager *user
	Extra   any
	Born    time.Time
}

func text(n int) string { return strings.Repeat("x", n) }

// heap returns how much the heap has grown for one of n values.
func heap[T any](n int, of func(i int) T) float64 {
	keep := make([]T, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range keep {
		keep[i] = of(i)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(keep)
	return float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / float64(n)
}

// measured checks the estimate against the heap, beyond the value itself.
func measured[T any](t *testing.T, name string, n int, within float64, of func(i int) T) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		want := heap(n, of)
		beyond := size.Beyond[T]()
		var sum int64
		for i := range n {
			sum += beyond(of(i))
		}
		got := float64(sum) / float64(n)
		if diff := got - want; diff > within*want+1 || -diff > within*want+1 {
			t.Errorf("estimate %.0f B, heap %.0f B", got, want)
		}
	})
}

func TestAgainstTheHeap(t *testing.T) {
	for _, n := range []int{16, 17, 100, 1000, 1025, 5000, 32 << 10, 40_000, 1 << 20} {
		measured(t, fmt.Sprint("bytes ", n), max(10, 1<<22/n), 0.02, func(int) []byte { return make([]byte, n) })
		measured(t, fmt.Sprint("string ", n), max(10, 1<<22/n), 0.02, func(int) string { return text(n) })
	}
	for _, n := range []int{1, 10, 63, 65, 100, 3000, 100_000} {
		measured(t, fmt.Sprint("pointers ", n), max(4, 10_000/n), 0.02, func(int) []*[3]int {
			s := make([]*[3]int, n)
			for i := range s {
				s[i] = new([3]int)
			}
			return s
		})
		measured(t, fmt.Sprint("strings ", n), max(4, 10_000/n), 0.06, func(int) []string {
			s := make([]string, n)
			for i := range s {
				s[i] = text(16 + rand.IntN(32))
			}
			return s
		})
	}
	for _, n := range []int{0, 1, 8, 9, 14, 15, 100, 800, 2000, 20_000} {
		measured(t, fmt.Sprint("map ", n), max(4, 10_000/(n+1)), 0.15, func(int) map[int]int {
			m := make(map[int]int)
			for i := range n {
				m[i] = i
			}
			return m
		})
		measured(t, fmt.Sprint("map of strings ", n), max(4, 10_000/(n+1)), 0.15, func(int) map[string]*user {
			m := make(map[string]*user)
			for i := range n {
				m[fmt.Sprintf("key-%08d", i)] = &user{Name: text(20)}
			}
			return m
		})
		measured(t, fmt.Sprint("map of what is large ", n), max(4, 10_000/(n+1)), 0.15, func(int) map[[20]int][30]string {
			m := make(map[[20]int][30]string)
			for i := range n {
				m[[20]int{i}] = [30]string{}
			}
			return m
		})
	}
	measured(t, "user", 5000, 0.03, func(i int) *user {
		return &user{
			Name: text(30), Emails: []string{text(20), text(40)}, Tags: map[string]int{text(9): 1},
			Manager: &user{Extra: 12345 + i}, Extra: user{Name: text(100)}, Born: time.Unix(1, 2),
		}
	})
	measured(t, "any", 10_000, 0.03, func(i int) any {
		switch i % 6 {
		case 0:
			return text(50)
		case 1:
			return make([]byte, 1000)
		case 2:
			return &user{Name: text(50)}
		case 3:
			return 1_000_000 + i
		case 4:
			return struct{ P *user }{&user{}}
		default:
			return [1]map[string]int{{text(20): 1}}
		}
	})
	measured(t, "channel", 1000, 0.03, func(int) chan int { return make(chan int, 100) })
	measured(t, "slices in slices", 100, 0.03, func(int) [][][]int {
		all := make([][][]int, 100)
		for i := range all {
			all[i] = make([][]int, 100)
			for j := range all[i] {
				all[i][j] = make([]int, 10)
			}
		}
		return all
	})
}

type ring struct {
	next *ring
	_    [100]byte
}

func TestCycle(t *testing.T) {
	a, b := new(ring), new(ring)
	a.next, b.next = b, a
	if got, want := size.Of[*ring]()(a), 8+2*size.Object(108, true); got != want {
		t.Errorf("a ring of two holds %d B, want %d", got, want)
	}
	var self any
	self = &self
	if got := size.Of[any]()(self); got != 16+16 {
		t.Errorf("what points to itself holds %d B, want 32", got)
	}
	m := map[string]any{}
	m["me"] = m
	if got := size.Of[map[string]any]()(m); got < 48 || got > 1000 {
		t.Errorf("a map in itself holds %d B", got)
	}
}

func TestSharedCountsOnce(t *testing.T) {
	large := new([1 << 20]byte)
	for _, n := range []int{2, 64, 65, 10_000} {
		all := make([]*[1 << 20]byte, n)
		for i := range all {
			all[i] = large
		}
		if got, want := size.Of[[]*[1 << 20]byte]()(all), 24+size.Object(uintptr(8*n), true)+1<<20; got != want {
			t.Errorf("%d pointers to one object hold %d B, want %d", n, got, want)
		}
	}
}

func TestBoundedWork(t *testing.T) {
	list := new(ring)
	for range 1_000_000 {
		list = &ring{next: list}
	}
	wide := make(map[int][]*ring)
	for i := range 10_000 {
		wide[i] = []*ring{{}, {}, {}}
	}
	for name, f := range map[string]func() int64{
		"list": func() int64 { return size.Of[*ring]()(list) },
		"wide": func() int64 { return size.Of[map[int][]*ring]()(wide) },
	} {
		start := time.Now()
		if got := f(); got < 1000*100 {
			t.Errorf("%s: %d B", name, got)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func TestWhatIsNotTheValues(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	if got := size.Of[time.Time]()(time.Now().In(zone)); got != 24 {
		t.Errorf("a time holds %d B, want 24", got)
	}
	if got := size.Of[reflect.Type]()(reflect.TypeFor[user]()); got != 16 {
		t.Errorf("a type holds %d B, want 16", got)
	}
	if got := size.Of[func()]()(func() { _ = zone }); got != 8 {
		t.Errorf("a func holds %d B, want 8", got)
	}
}

// Under the race detector this shows that nothing is looked at that may change.
func TestWhatIsGuarded(t *testing.T) {
	type guarded struct {
		mu   sync.RWMutex
		held map[int][]int
	}
	value := struct {
		Name  string
		Guard *guarded
		Map   *sync.Map
	}{text(50), &guarded{held: map[int][]int{}}, new(sync.Map)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 10_000 {
			value.Guard.mu.Lock()
			value.Guard.held[i] = []int{i}
			value.Guard.mu.Unlock()
			value.Map.Store(i, i)
		}
	})
	f := size.Of[any]()
	for range 1000 {
		if got := f(value); got < 100 || got > 500 {
			t.Fatalf("%d B", got)
		}
	}
	wg.Wait()
}

func TestNothing(t *testing.T) {
	if got := size.Of[any]()(nil); got != 16 {
		t.Errorf("nil in an interface holds %d B", got)
	}
	if got := size.Of[*user]()(nil); got != 8 {
		t.Errorf("a nil pointer holds %d B", got)
	}
	if got := size.Of[struct{}]()(struct{}{}); got != 0 {
		t.Errorf("an empty struct holds %d B", got)
	}
	if got := size.Of[[]struct{}]()(make([]struct{}, 10)); got != 24 {
		t.Errorf("empty structs hold %d B", got)
	}
	if got := size.Of[map[string]int]()(nil); got != 8 {
		t.Errorf("a nil map holds %d B", got)
	}
}

func TestConcurrently(t *testing.T) {
	f := size.Of[any]()
	u := &user{Name: "name", Manager: &user{}, Extra: []any{1, "two", map[string]int{"three": 3}}}
	want := f(u)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if got := f(u); got != want {
					t.Errorf("%d B, want %d", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestDoesNotAllocate(t *testing.T) {
	bytes, str, ptr := size.Of[[]byte](), size.Of[string](), size.Of[*user]()
	b, s, u := make([]byte, 100), text(100), &user{Name: "name", Emails: []string{"a", "b"}}
	if n := testing.AllocsPerRun(100, func() { bytes(b); str(s); ptr(u) }); n != 0 {
		t.Errorf("allocates %v times", n)
	}
}

func BenchmarkOf(b *testing.B) {
	bytes, ptr := size.Of[[]byte](), size.Of[*user]()
	value, u := make([]byte, 100), &user{Name: "name", Emails: []string{"a", "b"}, Tags: map[string]int{"a": 1}, Extra: 1}
	b.Run("bytes", func(b *testing.B) {
		for b.Loop() {
			bytes(value)
		}
	})
	b.Run("struct", func(b *testing.B) {
		for b.Loop() {
			ptr(u)
		}
	})
}
