//go:build unix && !linux

package worker

import "syscall"

// attributes: a process of a program that died reads the end of its stdin, and leaves by the protocol.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
