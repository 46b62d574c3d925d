package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the system kill the child when this process dies, also where it
// dies without running its clean-up.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
