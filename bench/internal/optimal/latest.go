package optimal

// latest is a binary heap with the greatest number at its top. That of the standard library
// would make an object of each number.
type latest []int64

func (l *latest) push(v int64) {
	h := append(*l, v)
	i := len(h) - 1
	for i > 0 {
		above := (i - 1) / 2
		if h[above] >= v {
			break
		}
		h[i] = h[above]
		i = above
	}
	h[i] = v
	*l = h
}

// pop takes the greatest number. There is one.
func (l *latest) pop() int64 {
	h := *l
	top, last := h[0], len(h)-1
	h[0] = h[last]
	*l = h[:last]
	l.sink(0)
	return top
}

// order makes a heap of numbers in any order.
func (l *latest) order() {
	for i := len(*l)/2 - 1; i >= 0; i-- {
		l.sink(i)
	}
}

// sink moves a number down to its place.
func (l *latest) sink(i int) {
	h := *l
	if i >= len(h) {
		return
	}
	v := h[i]
	for {
		below := 2*i + 1
		if below >= len(h) {
			break
		}
		if below+1 < len(h) && h[below+1] > h[below] {
			below++
		}
		if v >= h[below] {
			break
		}
		h[i] = h[below]
		i = below
	}
	h[i] = v
}
