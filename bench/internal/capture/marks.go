package capture

// Marks is a set of requests, by their numbers: those that a cache under replay is going to
// have as hits, for one, each by its key's next request. So no key is ever looked for.
type Marks struct {
	bits  []uint64 // of all requests; nil: there would be too many
	table table
	n     int
}

// NewMarks returns a set of requests of the recording, of which so many are in it at a time,
// at most. It takes a bit for each request, or 32 bytes for each that is in it, whichever is
// less.
func (r *Trace) NewMarks(most int64) *Marks {
	if r.counts.Requests/8 <= tableMemory*min(most, r.counts.Requests) {
		return &Marks{bits: make([]uint64, r.counts.Requests/64+1)}
	}
	return &Marks{table: newTable()}
}

// Len returns how many there are.
func (m *Marks) Len() int { return m.n }

// Add adds a request that is not in the set. The first request cannot be.
func (m *Marks) Add(request int64) {
	m.n++
	if m.bits == nil {
		m.table.add(request)
		return
	}
	m.bits[request>>6] |= 1 << (request & 63)
}

// Remove reports whether the request was there.
func (m *Marks) Remove(request int64) (was bool) {
	if m.bits == nil {
		was = m.table.remove(request)
	} else {
		word, bit := &m.bits[request>>6], uint64(1)<<(request&63)
		was = *word&bit != 0
		*word &^= bit
	}
	if was {
		m.n--
	}
	return was
}

// tableMemory is what a table takes for a number, in bytes.
const tableMemory = 32

// table is a set of numbers above zero, of open addressing.
type table struct {
	slots []int64 // a power of two of them; zero: empty
	shift int     // of a 64-bit hash, to a slot
	n     int
}

func newTable() table { return table{slots: make([]int64, 1<<10), shift: 64 - 10} }

// home is where the number begins to look for a place. The multiplier is 2^64 divided by
// the golden ratio (Knuth, The Art of Computer Programming, 6.4).
func (t *table) home(v int64) int { return int(uint64(v) * 0x9e3779b97f4a7c15 >> t.shift) }

func (t *table) add(v int64) {
	if 2*t.n >= len(t.slots) {
		old := t.slots
		t.slots, t.n = make([]int64, 2*len(old)), 0
		t.shift--
		for _, v := range old {
			if v != 0 {
				t.add(v)
			}
		}
	}
	mask := len(t.slots) - 1
	i := t.home(v)
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = v
	t.n++
}

// remove reports whether the number was there.
func (t *table) remove(v int64) bool {
	if v == 0 {
		return false
	}
	mask := len(t.slots) - 1
	i := t.home(v)
	for ; t.slots[i] != v; i = (i + 1) & mask {
		if t.slots[i] == 0 {
			return false
		}
	}
	t.n--
	// What stands behind and would have begun here or before moves up (Knuth's R).
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		if (j-t.home(t.slots[j]))&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = 0
	return true
}
