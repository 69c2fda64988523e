//go:build !linux

package plugin

// reap waits for the end of the process.
func (c *child) reap() {
	_ = c.cmd.Wait() // the state says it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive = false
}
