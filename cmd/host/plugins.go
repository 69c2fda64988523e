package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/sluicehost/sluice/core/plugin"
	"github.com/sluicehost/sluice/core/registry"
	"github.com/sluicehost/sluice/sdk/rpc"
)

// plugins is the registry, and what the command line adds to it.
type plugins struct {
	*registry.Registry
	dev []devPlugin // with their paths
}

// plugins finds and reads the registry. Where there is none, plugins that the command line
// gives with their paths will do.
func (r registryFlags) plugins(a *app) (*plugins, error) {
	p := &plugins{dev: slices.Clone(r.PluginDev)}
	path, tried, err := registry.Find(r.Registry)
	for _, place := range tried {
		a.log.Debug("looked for the registry", "place", place)
	}
	switch {
	case err == nil:
		if p.Registry, err = registry.Load(path); err != nil {
			return nil, err
		}
	case len(p.dev) > 0 && r.Registry == "" && os.Getenv(registry.Env) == "":
		p.Registry = &registry.Registry{}
	default:
		return nil, err
	}
	for i, d := range p.dev {
		if d.path != "" {
			continue
		}
		entry, ok := p.byName(d.name)
		if !ok {
			return nil, fmt.Errorf("--plugin-dev %s: the registry %s has no such plugin: give its program as %s=PATH", d.name, p.Path, d.name)
		}
		p.dev[i].path = entry.Path
	}
	return p, nil
}

func (p *plugins) byName(name string) (registry.Plugin, bool) {
	i := slices.IndexFunc(p.Plugins, func(x registry.Plugin) bool { return x.Name == name })
	if i < 0 {
		return registry.Plugin{}, false
	}
	return p.Plugins[i], true
}

// start starts the plugin that runs an architecture: the first named by --plugin-dev that
// says it does, else the registry's.
func (p *plugins) start(a *app, architecture string) (*plugin.Process, error) {
	for _, d := range p.dev {
		process, err := p.startDev(a, d)
		if err != nil {
			return nil, err
		}
		about, err := process.Describe(a.ctx)
		if err == nil && slices.Contains(about.GetArchitectures(), architecture) {
			return process, nil
		}
		if closed := process.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, err
		}
		a.log.Info("plugin of --plugin-dev does not run this file", "plugin", d.name, "architecture", architecture)
	}
	entry, err := p.PluginFor(architecture)
	if err != nil {
		return nil, err
	}
	return p.startEntry(a, entry)
}

// startEntry starts a plugin of the registry, whose program must have the locked checksum.
func (p *plugins) startEntry(a *app, entry registry.Plugin) (*plugin.Process, error) {
	host := rpc.Protocols()
	both := slices.DeleteFunc(slices.Clone(host), func(v int) bool { return !slices.Contains(entry.Protocols, v) })
	if len(both) == 0 {
		return nil, fmt.Errorf("plugin %s: speaks protocol %v by the registry %s, the host speaks %v: take a plugin for this host's protocol, or rebuild the older of the two",
			entry.Name, entry.Protocols, p.Path, host)
	}
	if !entry.Built() {
		return nil, fmt.Errorf("plugin %s: %s is not there: build it (make build), or fix its command in %s", entry.Name, entry.Path, p.Path)
	}
	if entry.SHA256 == "" {
		return nil, fmt.Errorf("plugin %s: %s, or run it unchecked with --plugin-dev %s", entry.Name, entry.Unlocked, entry.Name)
	}
	return p.launch(a, plugin.Options{Name: entry.Name, Path: entry.Path, Architectures: entry.Architectures,
		SHA256: entry.SHA256, Lock: p.Lock, Protocols: both})
}

func (p *plugins) startDev(a *app, d devPlugin) (*plugin.Process, error) {
	return p.launch(a, plugin.Options{Name: d.name, Path: d.path, Dev: true})
}

func (p *plugins) launch(a *app, o plugin.Options) (*plugin.Process, error) {
	o.Logger, o.Stderr = a.log, a.err
	process, err := plugin.Start(a.ctx, o)
	if err == nil {
		a.log.Debug("plugin started", "plugin", o.Name, "pid", process.PID(), "path", o.Path)
	}
	return process, err
}
