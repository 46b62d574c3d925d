package lab

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// key is the one that everybody asks for.
const key = "key"

// Reads are what became of the reads of one key.
type Reads struct {
	// Requests counts those that have their answer, Failed those of them whose answer is
	// an error other than that there is no value.
	Requests, Failed int
	// Slow counts those that took longer than the threshold, from when they began.
	Slow int
	// Oldest is the greatest age of a value when it was served, from when its query began.
	Oldest time.Duration
	// P50, P90, P99 and P999 are how long reads took, Max is the longest.
	P50, P90, P99, P999, Max time.Duration
}

// tally adds up reads.
type tally struct {
	slowAbove time.Duration

	mu    sync.Mutex
	reads Reads
	took  []time.Duration
}

// read makes one read and adds it up, unless its context has ended.
func (t *tally) read(ctx context.Context, r reader) {
	began := tier.Now()
	answer, err := r.read(ctx, key)
	now := tier.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		return
	}
	t.reads.Requests++
	t.took = append(t.took, now.Sub(began))
	if now.Sub(began) > t.slowAbove {
		t.reads.Slow++
	}
	switch {
	case err == nil:
		t.reads.Oldest = max(t.reads.Oldest, answer.age(began, now))
	case !errors.Is(err, tier.ErrAbsent):
		t.reads.Failed++
	}
}

// sum returns what was added up.
func (t *tally) sum() Reads {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.took); n > 0 {
		slices.Sort(t.took)
		at := func(permille int) time.Duration { return t.took[min(n*permille/1000, n-1)] }
		t.reads.P50, t.reads.P90, t.reads.P99, t.reads.P999, t.reads.Max = at(500), at(900), at(990), at(999), t.took[n-1]
	}
	return t.reads
}
