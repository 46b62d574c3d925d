package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the system kill the child when this process dies, however it does,
// and keeps a Ctrl-C of the terminal from it, so that its end is ours to choose.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
