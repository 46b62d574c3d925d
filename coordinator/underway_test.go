package coordinator

import (
	"context"
	"errors"
	"testing"

	"github.com/terracecache/terrace/policy"
)

// A flight that begins when Close has already cancelled what it found under way is
// cancelled too (Z1).
func TestFlightBeginsBehindClose(t *testing.T) {
	var loads int
	c := clockedCache(t, policy.Fixed{}, &loads)
	c.stop(ErrClosed)
	if _, err := c.Get(context.Background(), "key"); !errors.Is(err, ErrClosed) || loads != 0 {
		t.Errorf("got error %v after %d loads, want %v and none", err, loads, ErrClosed)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
