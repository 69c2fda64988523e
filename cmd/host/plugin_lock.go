package main

import (
	"github.com/sluicehost/sluice/core/registry"
)

type pluginLockCmd struct{ registryPath }

// Run writes the lock file beside the registry.
func (c *pluginLockCmd) Run(a *app) error {
	path, _, err := registry.Find(c.Registry)
	if err != nil {
		return err
	}
	if err := registry.Lock(path); err != nil {
		return err
	}
	a.log.Info("locked", "registry", path)
	return nil
}
