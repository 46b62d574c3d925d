package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What has no room beside others waits for it, and what is larger than all runs alone.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRoom(100)
		release := r.take(t.Context(), 60)
		r.take(t.Context(), 40)()
		r.take(t.Context(), 0)()
		time.AfterFunc(time.Second, release)
		release = r.take(t.Context(), 50)
		if took := time.Since(began); took != time.Second {
			t.Errorf("60 and 50 of 100: waited %v, want 1s", took)
		}
		time.AfterFunc(time.Second, release)
		release = r.take(t.Context(), 1000)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("1000 of 100: waited %v, want 2s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.take(ctx, 1)() // must not give what it has not got
		release()
		if took := time.Since(began); took != 3*time.Second || r.left != 100 {
			t.Errorf("after %v %d are left, want 3s and 100", took, r.left)
		}
	})
}
