package coordinator

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Whoever was let in is waited for, wherever it ends, and once nothing runs that is told.
func TestLifeIsIdleWhenNothingRuns(t *testing.T) {
	for round := range 5000 {
		l := newLife()
		var in atomic.Int64
		var done sync.WaitGroup
		for range 6 {
			done.Go(func() {
				for range 3 {
					if !l.begin() {
						return
					}
					in.Add(1)
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						runtime.Gosched()
						in.Add(-1)
						l.end()
					}()
					<-ended
				}
			})
		}
		done.Go(func() {
			for range round % 7 {
				runtime.Gosched()
			}
			l.close()
			<-l.idle
			if n := in.Load(); n != 0 {
				t.Errorf("round %d: idle with %d under way", round, n)
			}
		})
		done.Wait()
	}
}
