package capture

const (
	fewSlots  = 1 << 12
	mostSlots = 1 << 21 // 32 MiB, and as much again while it is rebuilt
)

// positions maps hashes to the place where each was seen last. It is a table of open
// addressing, of 16 bytes a slot, of which a quarter stays empty.
type positions struct {
	slots []slot
	most  int // slots
	n     int
}

type slot struct {
	hash uint64
	at   int64 // what [positions.swap] returns next; zero: empty, as nothing comes before the first
}

func newPositions(most int) *positions {
	return &positions{slots: make([]slot, min(fewSlots, most)), most: most}
}

func (p *positions) clear() {
	clear(p.slots)
	p.n = 0
}

// full reports whether no other hash has room, and makes room as long as it may.
func (p *positions) full() bool {
	if p.n < len(p.slots)/4*3 {
		return false
	}
	if len(p.slots) >= p.most {
		return true
	}
	p.rebuild(2*len(p.slots), func(uint64) bool { return true })
	return false
}

// keep drops all others.
func (p *positions) keep(wanted func(hash uint64) bool) { p.rebuild(len(p.slots), wanted) }

func (p *positions) rebuild(size int, wanted func(uint64) bool) {
	old := p.slots
	p.slots, p.n = make([]slot, size), 0
	for _, s := range old {
		if s.at != 0 && wanted(s.hash) {
			*p.find(s.hash) = s
			p.n++
		}
	}
}

// find returns the slot of the hash, or the empty one that is its place. The low bits
// say where it begins: the high ones are alike.
func (p *positions) find(hash uint64) *slot {
	mask := uint64(len(p.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if s := &p.slots[i]; s.at == 0 || s.hash == hash {
			return s
		}
	}
}

// swap notes that the hash is at the given place, and returns where it is next. For what
// comes before a deletion that is Gone.
func (p *positions) swap(hash uint64, at int64, deletes bool) (next int64) {
	s := p.find(hash)
	if next = s.at - 1; s.at == 0 {
		p.n++
		next = Never
	}
	s.hash = hash
	if deletes {
		at = Gone
	}
	s.at = at + 1
	return next
}
