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
	countersPerKey  = 16
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

// isFor reports whether there is a sketch, made for the given number of keys.
func (s *sketch) isFor(keys int) bool { return s != nil && s.limit == samplePerKey*keys }

// learn raises the counters of a key to what is known of it, which makes no request.
func (s *sketch) learn(hash, count uint64) {
	p := s.locate(hash)
	for least := p.least(); least < count; least++ {
		p.raise(least)
	}
}

// spot says where the counters of a key are: four in one line, one in each pair of
// its words.
type spot struct {
	line *[8]uint64
	at   uint64 // a byte for each pair: in its low bits which of 32 counters
}

func (s *sketch) locate(hash uint64) spot {
	// Other bits than the table's: those of one bucket must not share a line.
	h := hash * 0x9E3779B97F4A7C15
	h ^= h >> 32
	return spot{&s.lines[(h>>32)*uint64(len(s.lines))>>32], h * 0xD6E8FEB86659FD93 >> 32}
}

// word and shift say where the counter of a pair is.
func (p spot) word(pair uint64) *uint64 { return &p.line[(2*pair+p.at>>(8*pair+4)&1)&7] }

func (p spot) shift(pair uint64) uint64 { return p.at >> (8 * pair) & 15 * 4 }

// The next two are written out for all pairs, as a loop costs three times as much.

func (p spot) least() uint64 {
	return min(
		*p.word(0)>>p.shift(0)&counterMax, *p.word(1)>>p.shift(1)&counterMax,
		*p.word(2)>>p.shift(2)&counterMax, *p.word(3)>>p.shift(3)&counterMax,
	)
}

// raise adds one to those counters that are at the least.
func (p spot) raise(least uint64) {
	raise := func(word *uint64, shift uint64) {
		if *word>>shift&counterMax == least {
			*word += 1 << shift
		}
	}
	raise(p.word(0), p.shift(0))
	raise(p.word(1), p.shift(1))
	raise(p.word(2), p.shift(2))
	raise(p.word(3), p.shift(3))
}

// add counts one request.
func (s *sketch) add(hash uint64) {
	p := s.locate(hash)
	if least := p.least(); least < counterMax {
		p.raise(least)
	}
	if s.counts++; s.counts >= s.limit {
		s.halve()
	}
}

// estimate returns how often the key was counted, at most 15.
func (s *sketch) estimate(hash uint64) uint64 { return s.locate(hash).least() }

func (s *sketch) halve() {
	for i := range s.lines {
		for j, word := range s.lines[i] {
			s.lines[i][j] = word >> 1 & lowThree
		}
	}
	s.counts /= 2
}
