package sieve

import (
	"container/list"
	"slices"
)

// reference is SIEVE as its paper has it (algorithm 1), and one thing more: the bound
// on how far the hand goes. The front of the queue is its head.
type reference struct {
	capacity int
	farthest int
	queue    *list.List // of *item
	items    map[int]*list.Element
	hand     *list.Element

	gaveUp int // how often the bound decided
}

type item struct {
	key     int
	visited bool
}

func newReference(capacity, farthest int) *reference {
	return &reference{capacity: capacity, farthest: farthest, queue: list.New(), items: make(map[int]*list.Element)}
}

func (r *reference) get(key int) (held bool) {
	e, held := r.items[key]
	if held {
		e.Value.(*item).visited = true
	}
	return held
}

func (r *reference) set(key int) {
	if r.get(key) {
		return
	}
	if r.queue.Len() == r.capacity {
		o := r.hand
		if o == nil {
			o = r.queue.Back()
		}
		steps := 0
		for ; o.Value.(*item).visited; steps++ {
			if steps == r.farthest {
				r.gaveUp++
				break
			}
			o.Value.(*item).visited = false
			if o = o.Prev(); o == nil {
				o = r.queue.Back()
			}
		}
		r.hand = o
		r.drop(o)
	}
	r.items[key] = r.queue.PushFront(&item{key: key})
}

func (r *reference) delete(key int) {
	if e := r.items[key]; e != nil {
		r.drop(e)
	}
}

func (r *reference) drop(e *list.Element) {
	if r.hand == e {
		r.hand = e.Prev()
	}
	delete(r.items, e.Value.(*item).key)
	r.queue.Remove(e)
}

func (r *reference) clear() {
	r.queue.Init()
	clear(r.items)
	r.hand = nil
}

func (r *reference) state() state {
	return state{main: itemsOf(r.queue), hand: handOf(r.hand)}
}

// filteredReference is SIEVE behind a window and a filter. It takes the word of the
// sketch, which is tested by itself, for how often a key was asked for.
type filteredReference struct {
	capacity, windowRoom int
	farthest             int
	window, main         *list.List
	windowItems          map[int]*list.Element
	mainItems            map[int]*list.Element
	hand                 *list.Element // of main
	hash                 func(key int) uint64
	sketch               *sketch

	admitted, rejected int
}

func newFilteredReference(capacity, farthest int, hash func(int) uint64) *filteredReference {
	return &filteredReference{
		capacity: capacity, windowRoom: max(1, capacity/10), farthest: farthest,
		window: list.New(), main: list.New(),
		windowItems: make(map[int]*list.Element), mainItems: make(map[int]*list.Element),
		hash: hash,
	}
}

func (r *filteredReference) count(key int) { r.sketch.add(r.hash(key)) }

func (r *filteredReference) get(key int) (held bool) {
	for _, items := range []map[int]*list.Element{r.windowItems, r.mainItems} {
		if e := items[key]; e != nil {
			e.Value.(*item).visited = true
			return true
		}
	}
	return false
}

func (r *filteredReference) set(key int) {
	if r.get(key) {
		return
	}
	held := r.window.Len() + r.main.Len()
	if r.sketch == nil && held >= r.capacity/2 {
		r.sketch = newSketch(r.capacity)
	}
	if r.sketch != nil {
		r.count(key)
	}
	if held == r.capacity {
		r.contend()
	}
	r.windowItems[key] = r.window.PushFront(&item{key: key})
	if r.window.Len() > r.windowRoom {
		r.promote()
	}
}

// contend lets the oldest of the window and the next victim of main decide which of
// them goes. Either may be missing, when it is the other.
func (r *filteredReference) contend() {
	r.moveHand()
	candidate := r.window.Back().Value.(*item)
	if r.main.Len() == 0 {
		r.delete(candidate.key)
		return
	}
	if candidate.visited {
		candidate.visited = false
		r.count(candidate.key)
	}
	victim := r.hand.Value.(*item)
	if r.sketch.estimate(r.hash(candidate.key)) > r.sketch.estimate(r.hash(victim.key)) {
		r.admitted++
		r.delete(victim.key)
		r.promote()
	} else {
		r.rejected++
		r.delete(candidate.key)
	}
}

func (r *filteredReference) moveHand() {
	if r.hand == nil {
		r.hand = r.main.Back()
	}
	for range r.farthest {
		if r.hand == nil || !r.hand.Value.(*item).visited {
			return
		}
		r.hand.Value.(*item).visited = false
		r.count(r.hand.Value.(*item).key)
		if r.hand = r.hand.Prev(); r.hand == nil {
			r.hand = r.main.Back()
		}
	}
}

// promote moves the oldest of the window to main.
func (r *filteredReference) promote() {
	i := r.window.Remove(r.window.Back()).(*item)
	delete(r.windowItems, i.key)
	r.mainItems[i.key] = r.main.PushFront(i)
}

func (r *filteredReference) delete(key int) {
	if e := r.windowItems[key]; e != nil {
		delete(r.windowItems, key)
		r.window.Remove(e)
	}
	if e := r.mainItems[key]; e != nil {
		if r.hand == e {
			r.hand = e.Prev()
		}
		delete(r.mainItems, key)
		r.main.Remove(e)
	}
}

func (r *filteredReference) clear() {
	empty := newFilteredReference(r.capacity, r.farthest, r.hash)
	empty.admitted, empty.rejected = r.admitted, r.rejected
	*r = *empty
}

func (r *filteredReference) state() state {
	return state{window: itemsOf(r.window), main: itemsOf(r.main), hand: handOf(r.hand)}
}

// state is all that decides what is evicted next, but for the sketch.
type state struct {
	window, main []item // from the newest to the oldest
	hand         int    // a key, or noHand
}

const noHand = -1

func (s state) equal(o state) bool {
	return slices.Equal(s.window, o.window) && slices.Equal(s.main, o.main) && s.hand == o.hand
}

func itemsOf(l *list.List) []item {
	var items []item
	for e := l.Front(); e != nil; e = e.Next() {
		items = append(items, *e.Value.(*item))
	}
	return items
}

func handOf(e *list.Element) int {
	if e == nil {
		return noHand
	}
	return e.Value.(*item).key
}
