//go:build !unix

package worker

import "os/exec"

// signal ends the process alone: there are no groups here.
func (p *process) signal(force bool) {
	if force {
		_ = p.cmd.Process.Kill() // it may be gone already
	}
}

func ownGroup(*exec.Cmd) {}
