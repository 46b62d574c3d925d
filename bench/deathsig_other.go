//go:build !linux

package main

import "os/exec"

// dieWithParent does nothing here. A process of a fleet ends when its stdin does; a
// server that the bench started outlives a bench that is killed.
func dieWithParent(*exec.Cmd) {}
