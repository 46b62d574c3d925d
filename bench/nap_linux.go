package main

import (
	"syscall"
	"time"

	"github.com/terracecache/terrace/tier"
)

// spin is the rest of a nap that is not slept: a thread wakes up to this much late.
const spin = 30 * time.Microsecond

// nap sleeps for a time of milliseconds or less and is late by a microsecond or so.
// time.Sleep is late by up to a millisecond, since the runtime waits for timers by
// epoll, which counts in milliseconds; that would drown what is measured.
func nap(d time.Duration) {
	until := tier.Now().Add(d)
	if d > spin {
		const setTimerSlack = 29 // PR_SET_TIMERSLACK, of this thread; by default 50 µs
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
		t := syscall.NsecToTimespec(int64(d - spin))
		_ = syscall.Nanosleep(&t, nil) // a signal may end it early; the loop makes up for it
	}
	for tier.Now() < until {
	}
}
