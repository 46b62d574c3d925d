//go:build !linux

package main

import "time"

// fleetNow is a time in ns that all processes of this machine share: the wall clock's, which
// must not be set meanwhile.
func fleetNow() int64 { return time.Now().UnixNano() }
