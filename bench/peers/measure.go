package main

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"time"
)

// sample is what one measurement found.
type sample struct {
	ns     float64 // wall time of an operation: of the loop, by all operations of all goroutines
	allocs float64 // an operation
	bytes  float64 // allocated an operation
	heap   float64 // live bytes an entry; 0 where it is not asked
}

// body does n operations as the worker of the number, from 0.
type body func(worker, n int) error

// stopwatch measures a body again and again, each time for about as long. It is the
// number of operations that it keeps: the loop itself does not look at the clock.
type stopwatch struct {
	goroutines int
	seconds    float64
	n          int // operations of all goroutines; 0: to be found
}

// mostOperations bounds what calibration may find.
const mostOperations = 1e10

// warmUp is the part of a measurement that runs before it, in a cache that was just
// filled.
const warmUp = 8

// measure returns one measurement of the body, which has run before.
func (w *stopwatch) measure(ctx context.Context, b body) (sample, error) {
	if w.n == 0 {
		if err := w.calibrate(ctx, b); err != nil {
			return sample{}, err
		}
	} else if _, err := perform(w.goroutines, w.n/warmUp, b, nil); err != nil {
		return sample{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return sample{}, err
	}
	return timed(w.goroutines, w.n, b)
}

// calibrate finds the number of operations that takes the time, as testing.B does.
func (w *stopwatch) calibrate(ctx context.Context, b body) error {
	want := w.seconds * float64(time.Second)
	for n := w.goroutines; ; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		s, err := perform(w.goroutines, n, b, nil)
		if err != nil {
			return err
		}
		fits := want / max(s.ns, 0.1)
		if took := s.ns * float64(n); took >= want/2 || fits >= mostOperations {
			w.n = max(w.goroutines, int(min(fits, mostOperations)))
			return nil
		}
		n = int(math.Ceil(min(1.2*fits, 100*float64(n))))
	}
}

// timed is perform with the garbage collected before, so that nobody pays for that of
// another. With millions of entries that takes seconds.
func timed(goroutines, n int, b body) (sample, error) {
	return perform(goroutines, n, b, runtime.GC)
}

// perform does n operations of the body, or a few more, in the goroutines and returns
// what one of them took. The goroutines are there before the clock starts, and what
// they allocated till then is not counted. It calls prepare, if that is not nil, just
// before.
func perform(goroutines, n int, b body, prepare func()) (sample, error) {
	each := max(1, (n+goroutines-1)/goroutines)
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, goroutines)
	ready.Add(goroutines)
	for worker := range goroutines {
		done.Go(func() {
			ready.Done()
			// Parked as one parks who waits for an answer within a context, so that what
			// the runtime takes for that is there before.
			select {
			case <-start:
				errs[worker] = b(worker, each)
			case <-request.Done():
			}
		})
	}
	ready.Wait()
	if prepare != nil {
		prepare()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	close(start)
	done.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)

	operations := float64(each * goroutines)
	return sample{
		ns:     float64(took) / operations,
		allocs: float64(after.Mallocs-before.Mallocs) / operations,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / operations,
	}, errors.Join(errs...)
}
