//go:build unix && !linux

package plugin

import (
	"os"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C away from the plugin.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
