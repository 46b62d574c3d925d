//go:build !linux

package main

import "time"

// newNap returns a function that sleeps for times of milliseconds or less. Where the
// system's timers are coarse it wakes late; the bench measures by how much and says
// so.
func newNap() (nap func(time.Duration), release func()) { return time.Sleep, func() {} }
