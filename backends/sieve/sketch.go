package sieve

// sketch estimates how often each of many keys was asked for of late, in four bits
// each or less: a count-min sketch of 4-bit counters with conservative update, whose
// counters are all halved when ten times as many as it is meant for have been
// counted. The four counters of a key lie in one cache line.
//
// Source: Cormode, Muthukrishnan, "An Improved Data Stream Summary: The Count-Min
// Sketch and its Applications", 2005; the halving: TinyLFU (see [Filtered]).
type sketch struct {
	lines  [][8]uint64 // 16 counters a word
	counts int         // made since the last halving, or half of those before
	limit  int
}

const (
	countersPerKey  = 8
	countersPerLine = 8 * 16
	// samplePerKey is how many counts for each key are made between two halvings.
	samplePerKey = 10
	counterMax   = 15
	lowThree     = 0x7777777777777777
)

func newSketch(keys int) *sketch {
	lines := (keys*countersPerKey + countersPerLine - 1) / countersPerLine
	return &sketch{lines: make([][8]uint64, max(1, lines)), limit: samplePerKey * keys}
}

// locate returns the line of a hash, and bits that say which counters in it are the
// key's: of each pair of words one counter.
func (s *sketch) locate(hash uint64) (line *[8]uint64, which uint64) {
	// Other bits than the table's: those of one bucket must not share a line.
	h := hash * 0x9E3779B97F4A7C15
	h ^= h >> 32
	return &s.lines[(h>>32)*uint64(len(s.lines))>>32], h * 0xD6E8FEB86659FD93 >> 32
}

// add counts one request.
func (s *sketch) add(hash uint64) {
	line, which := s.locate(hash)
	least := s.leastOf(line, which)
	if least < counterMax {
		for row := range uint64(4) {
			word, shift := counter(which, row)
			if line[word]>>shift&counterMax == least {
				line[word] += 1 << shift
			}
		}
	}
	if s.counts++; s.counts >= s.limit {
		s.halve()
	}
}

// estimate returns how often the key was counted, at most 15.
func (s *sketch) estimate(hash uint64) uint64 {
	line, which := s.locate(hash)
	return s.leastOf(line, which)
}

func (s *sketch) leastOf(line *[8]uint64, which uint64) uint64 {
	least := uint64(counterMax)
	for row := range uint64(4) {
		word, shift := counter(which, row)
		least = min(least, line[word]>>shift&counterMax)
	}
	return least
}

// counter returns where the key's counter of a row is: one of the 32 in two words.
func counter(which, row uint64) (word, shift uint64) {
	which >>= 8 * row
	return 2*row + which>>4&1, which & 15 * 4
}

func (s *sketch) halve() {
	for i := range s.lines {
		for j, word := range s.lines[i] {
			s.lines[i][j] = word >> 1 & lowThree
		}
	}
	s.counts /= 2
}
