//go:build unix

package worker

import (
	"os/exec"
	"syscall"
)

// signal ends the whole group of a process, by request or by force.
func (p *process) signal(force bool) {
	s := syscall.SIGTERM
	if force {
		s = syscall.SIGKILL
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, s) // it may be gone already
}

// ownGroup makes the process lead a group of its own, that a Ctrl-C on the terminal does not reach and that can be ended as one.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = attributes() }
