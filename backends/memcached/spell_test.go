package memcached

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestASpellBeginsAfterAStallAndPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s spell
		if s.lasts() {
			t.Error("the zero spell lasts")
		}
		stop := s.beginAfter(stalled)
		time.Sleep(stalled - 1)
		stop()
		time.Sleep(time.Second)
		if s.lasts() {
			t.Error("it has begun though it was stopped")
		}
		for range 2 {
			defer s.beginAfter(stalled)()
			time.Sleep(stalled)
			synctest.Wait()
			if !s.lasts() {
				t.Error("it has not begun")
			}
			time.Sleep(apartFor - time.Millisecond)
			if !s.lasts() {
				t.Error("it has passed too early")
			}
			time.Sleep(time.Millisecond)
			if s.lasts() {
				t.Error("it has not passed")
			}
		}
	})
}
