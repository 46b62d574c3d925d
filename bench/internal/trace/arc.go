package trace

import (
	"errors"
	"fmt"
	"math"
)

// arc is lines of "start count ignored requestNo", which stand for count keys in a row.
// Source: the traces of Megiddo, Modha, "ARC", FAST 2003.
type arc struct{}

func (arc) fields() Fields { return Fields{} }

func (arc) parse(line []byte, to *run) error {
	var f [4][]byte
	if n := columns(line, f[:]); n != len(f) {
		return wantFields(n, "start, count, a number that is ignored, request number")
	}
	start, err := whole(f[0], "start")
	if err != nil {
		return err
	}
	count, err := repeats(f[1], "count")
	if err != nil {
		return err
	}
	for i, what := range []string{"third field", "request number"} {
		if _, err := whole(f[2+i], what); err != nil {
			return err
		}
	}
	if start > math.MaxUint64-count {
		return errors.New("start and count: more than 64 bits can hold")
	}
	to.Request, to.left, to.stride = Request{Key: start}, count, 1
	return nil
}

// repeats reads how many requests a line stands for.
func repeats(text []byte, what string) (uint64, error) {
	n, err := whole(text, what)
	if err == nil && (n < 1 || n > longestRun) {
		err = fmt.Errorf("%s %d: want 1 to %d", what, n, longestRun)
	}
	return n, err
}
