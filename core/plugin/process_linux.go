package plugin

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup keeps the terminal's Ctrl-C away from the plugin and lets it die
// with the host, however that ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// reap waits for the end of the process. The group is swept while the dead
// leader still holds its number, so it can't be another's.
func (c *child) reap() {
	pid := c.cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	killGroup(c.cmd.Process)
	_ = c.cmd.Wait() // the state says it
	c.alive = false
}
