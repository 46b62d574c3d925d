package main

import (
	"context"
	"time"
)

const (
	// watchEvery is how often a server is asked whether it is still there.
	watchEvery = time.Second
	// watchMisses is how many times in a row it must fail to answer: one time a busy
	// machine may be to blame.
	watchMisses = 2
)

// watched runs the measurement and cuts it short, by the context that it is given,
// when the remote stops answering: the cache would go on without that tier, and a
// long row would be for nothing. The context's cause is then why. There may be no
// remote.
func watched[T any](ctx context.Context, r *remote, measure func(context.Context) (T, error)) (T, error) {
	if r == nil {
		return measure(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for misses := 0; misses < watchMisses; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			err := r.answers(ctx)
			if misses++; err == nil {
				misses = 0
			}
			if misses == watchMisses {
				cancel(err)
			}
		}
	}()
	defer func() {
		cancel(nil)
		<-ended
	}()
	return measure(ctx)
}
