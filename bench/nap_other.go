//go:build !linux

package main

import "time"

// nap sleeps for a time of milliseconds or less. Where the system's timers are
// coarse this is late; the bench measures by how much and says so.
func nap(d time.Duration) { time.Sleep(d) }
