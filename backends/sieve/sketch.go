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
	for p := s.locate(hash); p.raise(count)+1 < count; {
	}
}

// add counts one request.
func (s *sketch) add(hash uint64) {
	s.locate(hash).raise(counterMax)
	if s.counts++; s.counts >= s.limit {
		s.halve()
	}
}

// estimate returns how often the key was counted, at most 15.
func (s *sketch) estimate(hash uint64) uint64 { return s.locate(hash).raise(0) }

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

// raise returns the least of the counters and, if that is below most, adds one to those that
// are at it. It is written out for the four, and asks of none whether it is the least by a
// branch: nobody could foretell it.
func (p spot) raise(most uint64) (least uint64) {
	a, b, c, d := &p.line[p.at>>4&1], &p.line[2|p.at>>12&1], &p.line[4|p.at>>20&1], &p.line[6|p.at>>28&1]
	as, bs, cs, ds := p.at<<2&60, p.at>>6&60, p.at>>14&60, p.at>>22&60
	an, bn, cn, dn := *a>>as&counterMax, *b>>bs&counterMax, *c>>cs&counterMax, *d>>ds&counterMax
	if least = min(an, bn, cn, dn); least < most {
		*a += isZero(an^least) << as
		*b += isZero(bn^least) << bs
		*c += isZero(cn^least) << cs
		*d += isZero(dn^least) << ds
	}
	return least
}

// isZero returns 1 for zero, and 0 for what is less than half of the greatest number.
func isZero(n uint64) uint64 { return (n - 1) >> 63 }

func (s *sketch) halve() {
	for i := range s.lines {
		for j, word := range s.lines[i] {
			s.lines[i][j] = word >> 1 & lowThree
		}
	}
	s.counts /= 2
}
