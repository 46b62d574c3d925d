package optimal

// numbers is a set of numbers above zero, in a table of open addressing.
type numbers struct {
	slots []int64 // a power of two of them; zero: empty
	shift int     // of a 64-bit hash, to a slot
	n     int
}

func newNumbers() numbers { return numbers{slots: make([]int64, 1<<10), shift: 64 - 10} }

// home is where the number begins to look for a place. The multiplier is 2^64 divided by
// the golden ratio (Knuth, The Art of Computer Programming, 6.4).
func (s *numbers) home(v int64) int { return int(uint64(v) * 0x9e3779b97f4a7c15 >> s.shift) }

func (s *numbers) add(v int64) {
	if 2*s.n >= len(s.slots) {
		old := s.slots
		s.slots, s.n = make([]int64, 2*len(old)), 0
		s.shift--
		for _, v := range old {
			if v != 0 {
				s.add(v)
			}
		}
	}
	mask := len(s.slots) - 1
	i := s.home(v)
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = v
	s.n++
}

// remove reports whether the number was there.
func (s *numbers) remove(v int64) bool {
	if v == 0 {
		return false
	}
	mask := len(s.slots) - 1
	i := s.home(v)
	for ; s.slots[i] != v; i = (i + 1) & mask {
		if s.slots[i] == 0 {
			return false
		}
	}
	s.n--
	// What stands behind and would have begun here or before moves up (Knuth's R).
	for j := (i + 1) & mask; s.slots[j] != 0; j = (j + 1) & mask {
		if (j-s.home(s.slots[j]))&mask >= (j-i)&mask {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = 0
	return true
}
