package size

import "unsafe"

const (
	// budget is how many objects are followed in one value.
	budget = 4096
	// deepest is how many of them one after the other.
	deepest = 1000
	// sample is how many elements of a long slice or map are looked at.
	sample = 64
)

// visit is what is known while one value is walked.
type visit struct {
	left  int // of the budget
	depth int
	few   [16]unsafe.Pointer // objects met so far
	met   int
	many  map[unsafe.Pointer]struct{} // of these, those for which few has no room
}

func (v *visit) begin() { v.left, v.depth, v.met = budget, 0, 0 }

// end lets go of what was met.
func (v *visit) end() {
	clear(v.few[:])
	if len(v.many) > 256 {
		v.many = nil // an emptied map is as slow to clear as it was large
	}
	clear(v.many)
}

// enter reports whether the object at p is to be followed: it is there, it was not met
// before, and the budget allows it. After the object the caller leaves.
func (v *visit) enter(p unsafe.Pointer) bool {
	if p == nil || v.left <= 0 || v.depth >= deepest {
		return false
	}
	for _, q := range v.few[:min(v.met, len(v.few))] {
		if p == q {
			return false
		}
	}
	if v.met < len(v.few) {
		v.few[v.met] = p
	} else {
		if _, met := v.many[p]; met {
			return false
		}
		if v.many == nil {
			v.many = make(map[unsafe.Pointer]struct{})
		}
		v.many[p] = struct{}{}
	}
	v.met++
	v.left--
	v.depth++
	return true
}

func (v *visit) leave() { v.depth-- }

// estimate sums what n elements hold, of which at most a sample is looked at, and fewer
// when the budget ends. The first one stands for itself alone: what all elements share
// was counted there.
func (v *visit) estimate(n int, at func(i int) int64) int64 {
	looks := min(n, sample)
	var first, rest int64
	done := 0
	for ; done < looks && (v.left > 0 || done == 0); done++ {
		if bytes := at(int(int64(done) * int64(n) / int64(looks))); done == 0 {
			first = bytes
		} else {
			rest += bytes
		}
	}
	switch {
	case done == n:
		return first + rest
	case done < 2:
		return first * int64(n)
	default:
		return first + int64(float64(rest)*float64(n-1)/float64(done-1))
	}
}
