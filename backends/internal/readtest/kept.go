// Package readtest has what the tests of remote stores share about reads that many
// make at a time.
package readtest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// Kept is a key with what a Get of it is to give.
type Kept struct {
	Key   string
	Value []byte // nil: nothing
	Bad   bool   // unreadable

	// OrNothing says that what is Bad may be nothing to a read that others share.
	OrNothing bool
}

// Check returns what is wrong with a Get's answer.
func (k Kept) Check(value []byte, err error) error {
	switch {
	case k.Bad && value == nil && (errors.Is(err, tier.ErrUnreadable) || err == nil && k.OrNothing):
		return nil
	case k.Bad || err != nil:
		return errors.Join(fmt.Errorf("%.20q: got %d bytes", k.Key, len(value)), err)
	case !bytes.Equal(value, k.Value) || (value == nil) != (k.Value == nil):
		return fmt.Errorf("%.20q: got %d bytes, want %d: another's, or damaged", k.Key, len(value), len(k.Value))
	default:
		return nil
	}
}

// Readers is how many read at a time.
const Readers = 64

// Concurrently has many readers read all keys, each from another on, and checks what
// they get.
func Concurrently(t *testing.T, s tier.Bytes, all []Kept, rounds int) {
	t.Helper()
	var wg sync.WaitGroup
	for r := range Readers {
		wg.Go(func() {
			for i := range rounds * len(all) {
				k := all[(r*5+i)%len(all)]
				value, err := s.Get(t.Context(), k.Key)
				if err := k.Check(value, err); err != nil {
					t.Error(err)
					return
				}
				for i := range value {
					value[i] ^= 0xff // it is ours: nobody else may see this
				}
			}
		})
	}
	wg.Wait()
}
