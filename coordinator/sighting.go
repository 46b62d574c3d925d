package coordinator

import "github.com/terracecache/terrace/tier"

// sighting is what a level that can write on condition held when it was read.
type sighting struct {
	known   bool // it could be read
	version tier.Version
	holds   bool // there is an entry, or bytes that cannot be read; not a tombstone
}

// sightings are what the levels held, by index, from the first on that can write on
// condition. There is seldom another.
type sightings struct {
	from  int
	first sighting
	rest  []sighting // nil where no other level can tell
}

// newSightings takes the first and the last level that can tell; where none can the
// last is -1.
func newSightings(first, last int) sightings {
	s := sightings{from: first}
	if last > first {
		s.rest = make([]sighting, last-first)
	}
	return s
}

// at returns what the level was seen to hold, or nil where it cannot tell.
func (s *sightings) at(level int) *sighting {
	switch i := level - s.from; {
	case i == 0:
		return &s.first
	case i > 0 && i <= len(s.rest):
		return &s.rest[i-1]
	default:
		return nil
	}
}
