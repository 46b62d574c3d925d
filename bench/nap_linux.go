package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/terracecache/terrace/tier"
)

// spin is the rest of a nap that is not slept: about what a wake-up is late by.
const spin = 30 * time.Microsecond

// newNap returns a function that sleeps for times of milliseconds or less and wakes
// within tens of microseconds, and one that releases what it holds. Only one nap may
// be taken at once.
//
// time.Sleep is late by up to a millisecond in a process that is idle, since the
// runtime waits for its timers by epoll, which counts in milliseconds; that would
// drown what is measured. A timerfd is exact, and waiting for it blocks no thread;
// a thread in nanosleep keeps its processor of the runtime from whoever has work, for
// example answers of the server, and was seen to add milliseconds to p99.
func newNap() (nap func(time.Duration), release func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return time.Sleep, func() {}
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	expirations := make([]byte, 8)
	nap = func(d time.Duration) {
		until := tier.Now().Add(d)
		if d > spin {
			at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d - spin))}
			if err := unix.TimerfdSettime(fd, 0, &at, nil); err == nil {
				_, _ = timer.Read(expirations) // how often it ran out is known: once
			}
		}
		for tier.Now() < until {
		}
	}
	return nap, func() { timer.Close() }
}
