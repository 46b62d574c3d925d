package memcached

import (
	"testing"
	"testing/synctest"
	"time"
)

// lastsFor checks that the spell is over after d, and not before.
func lastsFor(t *testing.T, s *spell, d time.Duration) {
	t.Helper()
	time.Sleep(d - time.Nanosecond)
	if !s.lasts() {
		t.Errorf("it has passed before %v", d)
	}
	time.Sleep(time.Nanosecond)
	if s.lasts() {
		t.Errorf("it has not passed after %v", d)
	}
}

// stall is a round trip that takes the time, and the spell while it does.
func stall(t *testing.T, s *spell, took time.Duration) {
	t.Helper()
	w := s.watch()
	defer w.stop()
	time.Sleep(took)
	synctest.Wait()
	if !s.lasts() {
		t.Errorf("it has not begun though a round trip takes %v", took)
	}
}

func TestASpellBeginsWithAnErrorAndPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s spell
		if s.lasts() {
			t.Error("the zero spell lasts")
		}
		for range 2 {
			s.begin()
			lastsFor(t, &s, apartFor)
		}
	})
}

func TestASpellBeginsOnlyWithAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s spell
		w := s.watch()
		time.Sleep(stalled - 1)
		w.stop()
		time.Sleep(time.Second)
		if s.lasts() {
			t.Error("it has begun though the round trip was over")
		}
	})
}

// TestASpellIsAsLongAsTheStall has a process that was not run for a moment read as before
// soon after, and one that meets a slow server again and again read apart from it.
func TestASpellIsAsLongAsTheStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s spell
		const took = 80 * time.Millisecond
		for range 2 {
			stall(t, &s, took)
			lastsFor(t, &s, took)
			time.Sleep(apartFor)
		}
		for length := took; length < apartFor; length *= 2 {
			stall(t, &s, took)
			lastsFor(t, &s, length)
		}
		for range 2 {
			stall(t, &s, took)
			lastsFor(t, &s, apartFor)
		}
		time.Sleep(apartFor)
		stall(t, &s, 2*apartFor)
		lastsFor(t, &s, apartFor)
	})
}

func TestStallsThatMeetAreOne(t *testing.T) {
	const took = 80 * time.Millisecond
	for between, length := range map[time.Duration]time.Duration{0: took, apartFor: apartFor} {
		synctest.Test(t, func(t *testing.T) {
			var s spell
			first, second := s.watch(), s.watch()
			time.Sleep(took)
			synctest.Wait()
			first.stop()
			time.Sleep(between)
			if !s.lasts() {
				t.Error("it has passed though a round trip is stalled")
			}
			second.stop()
			lastsFor(t, &s, length)
		})
	}
}
