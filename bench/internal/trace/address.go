package trace

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// address is lines of a load (l) or store (s), a hexadecimal address, a count that says
// nothing here, and perhaps what a hit and a miss of this access cost. A miss's cost is
// that of the request.
type address struct{ penalties bool }

func (a *address) fields() Fields { return Fields{Costs: a.penalties, Ops: true} }

func (a *address) parse(line []byte, to *run) error {
	var f [5][]byte
	n := columns(line, f[:])
	want := 3
	if a.penalties {
		want = 5
	}
	if n != want {
		if a.penalties {
			return wantFields(n, "l or s, address, count, hit penalty, miss penalty")
		}
		return wantFields(n, "l or s, address, count")
	}
	q := Request{}
	switch string(f[0]) {
	case "l", "L":
	case "s", "S":
		q.Op = Write
	default:
		return fmt.Errorf("operation %s: want l or s", quoted(f[0]))
	}
	digits := f[1]
	if len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		digits = digits[2:]
	}
	var err error
	if q.Key, err = strconv.ParseUint(string(digits), 16, 64); err != nil {
		return fmt.Errorf("address %s: want a hexadecimal number that 64 bits can hold", quoted(f[1]))
	}
	if _, err = whole(f[2], "count"); err != nil {
		return err
	}
	if a.penalties {
		if _, err = penalty(f[3], "hit penalty"); err != nil {
			return err
		}
		if q.Cost, err = penalty(f[4], "miss penalty"); err != nil {
			return err
		}
	}
	return to.one(q)
}

func penalty(text []byte, what string) (float64, error) {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v <= math.MaxUint32) {
		return 0, fmt.Errorf("%s %s: want a number of at least 0", what, quoted(text))
	}
	return v, nil
}

// hasPenalties tells by the first line that could be of either kind.
func hasPenalties(s *source) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(s.beginning(), byteOrderMark)) {
		line = bytes.TrimSpace(line)
		for _, penalties := range []bool{false, true} {
			if (&address{penalties}).parse(line, new(run)) == nil {
				return penalties
			}
		}
	}
	return false
}
