package curve

import (
	"container/heap"
	"context"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/trace"
)

// Distances are how many keys were asked for between two requests of one key: what an LRU
// of any size does, exactly. Source: Mattson et al., "Evaluation techniques for storage
// hierarchies", IBM Systems Journal 1970; places are counted with a binary indexed tree
// (Fenwick, "A new data structure for cumulative frequency tables", 1994).
type Distances struct {
	requests int64
	// hits[d] is how many requests found their key in place d+1 of the stack: the LRU
	// of more than d entries has them as hits.
	hits []int64
}

// Hits returns the hits of an LRU of so many entries.
func (d *Distances) Hits(entries int64) (hits int64) {
	for _, n := range d.hits[:min(max(entries, 0), int64(len(d.hits)))] {
		hits += n
	}
	return hits
}

// MeasureDistances goes through the recording once. It takes some 50 bytes a key.
func MeasureDistances(ctx context.Context, rec *capture.Trace, tick func(int64)) (*Distances, error) {
	d := &Distances{requests: rec.Counts().Requests}
	s := newStack(1 << 10)
	err := rec.Each(ctx, func(b *capture.Batch) error {
		for i := range b.Requests {
			q := &b.Requests[i]
			if q.Op == trace.Delete {
				s.remove(q.Key)
				continue
			}
			if place := s.touch(q.Key); place > 0 {
				if place > len(d.hits) {
					d.hits = append(d.hits, make([]int64, place-len(d.hits))...)
				}
				d.hits[place-1]++
			}
		}
		tick(b.First + int64(len(b.Requests)))
		return nil
	})
	return d, err
}

// stack has the keys in the order in which they were asked for. Deleted ones leave a
// hole: the LRUs that had them have room for another until one comes, while those that
// were too small are as they were. So the next key that comes from below it fills the
// uppermost hole, and leaves one where it was itself.
type stack struct {
	at    map[uint64]int // of each key, its place in marks, from 1
	keys  []uint64       // of each place
	marks []int32        // a binary indexed tree of places that have a key or a hole
	holes places
	isGap []bool
	top   int // the last place that is taken
	n     int // marks that are set
}

func newStack(places int) *stack {
	return &stack{
		at:    make(map[uint64]int),
		keys:  make([]uint64, places+1),
		marks: make([]int32, places+1),
		isGap: make([]bool, places+1),
	}
}

func (s *stack) add(place int, n int32) {
	for i := place; i < len(s.marks); i += i & -i {
		s.marks[i] += n
	}
	s.n += int(n)
}

// upTo returns how many marks there are in the places up to the given one.
func (s *stack) upTo(place int) (n int) {
	for i := place; i > 0; i -= i & -i {
		n += int(s.marks[i])
	}
	return n
}

// touch puts the key on top, and returns its place in the stack until then, from 1; zero:
// it was not there.
func (s *stack) touch(key uint64) (place int) {
	old := s.at[key]
	if old > 0 {
		place = s.n - s.upTo(old-1)
	}
	switch {
	case len(s.holes) > 0 && s.holes[0] > old:
		s.fill()
		if old > 0 {
			s.gap(old)
		}
	case old > 0:
		s.add(old, -1)
		s.keys[old] = 0
	}
	delete(s.at, key)
	if s.top == len(s.keys)-1 {
		s.compact()
	}
	s.top++
	s.keys[s.top], s.at[key] = key, s.top
	s.add(s.top, 1)
	return place
}

// remove leaves a hole for the key.
func (s *stack) remove(key uint64) {
	if old := s.at[key]; old > 0 {
		delete(s.at, key)
		s.gap(old)
	}
}

func (s *stack) gap(place int) {
	s.isGap[place] = true
	heap.Push(&s.holes, place)
}

// fill takes the uppermost hole away.
func (s *stack) fill() {
	place := heap.Pop(&s.holes).(int)
	s.isGap[place] = false
	s.add(place, -1)
}

// compact numbers the places that are taken anew, with as much room again.
func (s *stack) compact() {
	old := *s
	*s = *newStack(max(1<<10, 2*old.n))
	s.at = old.at
	for place := 1; place <= old.top; place++ {
		key := old.keys[place]
		switch {
		case old.isGap[place]:
			s.top++
			s.gap(s.top)
		case old.at[key] == place:
			s.top++
			s.keys[s.top], s.at[key] = key, s.top
		default:
			continue
		}
		s.add(s.top, 1)
	}
}

// places is a heap with the greatest at its top.
type places []int

func (p places) Len() int           { return len(p) }
func (p places) Less(i, j int) bool { return p[i] > p[j] }
func (p places) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *places) Push(v any)        { *p = append(*p, v.(int)) }
func (p *places) Pop() any {
	last := len(*p) - 1
	v := (*p)[last]
	*p = (*p)[:last]
	return v
}
