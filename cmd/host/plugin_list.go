package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/sluicehost/sluice/core/registry"
	"github.com/sluicehost/sluice/sdk/rpc"
)

type pluginListCmd struct {
	registryFlags
	JSON bool `name:"json" help:"As JSON."`
}

// Help is the command's long help.
func (pluginListCmd) Help() string {
	return `Starts each plugin and asks it who it is. STATUS is ok, not built, not locked (no checksum) or failed; why follows on standard error. The exit code tells only whether the list could be made.`
}

// pluginRow is one plugin of the list. Version, architectures and protocols are what the
// plugin itself says where it is ok, and the registry's otherwise.
type pluginRow struct {
	Name          string   `json:"name"`
	Version       string   `json:"version"`
	Architectures []string `json:"architectures"`
	Protocols     []int    `json:"protocols"`
	Path          string   `json:"path"`
	Status        string   `json:"status"`
	Error         string   `json:"error,omitempty"`
}

// The states of a plugin.
const (
	stateOK        = "ok"
	stateNotBuilt  = "not built"
	stateNotLocked = "not locked"
	stateFailed    = "failed"
	stateLocked    = "locked" // of one that was not started
)

// stateOf is what can be said of a plugin without starting it.
func stateOf(p registry.Plugin) string {
	switch {
	case !p.Built():
		return stateNotBuilt
	case p.SHA256 == "":
		return stateNotLocked
	}
	return stateLocked
}

// Run starts every plugin of the registry, and those of --plugin-dev in their place.
func (c *pluginListCmd) Run(a *app) error {
	p, err := c.plugins(a)
	if err != nil {
		return err
	}
	rows := []pluginRow{}
	seen := map[string]bool{}
	for _, d := range p.dev {
		row := pluginRow{Name: d.name, Path: d.path, Architectures: []string{}, Protocols: []int{}}
		p.ask(a, &row, func() (closer, error) { return p.startDev(a, d) })
		rows = append(rows, row)
		seen[d.name] = true
	}
	for _, entry := range p.Plugins {
		if seen[entry.Name] {
			continue
		}
		row := pluginRow{Name: entry.Name, Version: entry.Version, Architectures: entry.Architectures, Protocols: entry.Protocols, Path: entry.Path}
		switch row.Status = stateOf(entry); row.Status {
		case stateNotLocked:
			row.Error = entry.Unlocked
		case stateLocked:
			p.ask(a, &row, func() (closer, error) { return p.startEntry(a, entry) })
		}
		rows = append(rows, row)
	}
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(rows)
	}
	return printPlugins(a, rows)
}

// closer is a started plugin.
type closer interface {
	rpc.Plugin
	Close() error
}

// ask starts a plugin, fills in what it says of itself and ends it.
func (p *plugins) ask(a *app, row *pluginRow, start func() (closer, error)) {
	process, err := start()
	if err == nil {
		var about *rpc.DescribeReply
		if about, err = process.Describe(a.ctx); err == nil {
			row.Version, row.Architectures, row.Protocols = about.GetVersion(), about.GetArchitectures(), []int{int(about.GetProtocol())}
		}
		if closed := process.Close(); err == nil {
			err = closed
		}
	}
	row.Status = stateOK
	if err != nil {
		row.Status, row.Error = stateFailed, err.Error()
	}
}

func printPlugins(a *app, rows []pluginRow) error {
	w := &errWriter{w: a.out}
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "NAME\tVERSION\tARCHITECTURES\tPROTOCOL\tSTATUS\tPATH")
		for _, r := range rows {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, quoted(r.Version), strings.Join(r.Architectures, ","), numbers(r.Protocols), r.Status, r.Path)
		}
	})
	for _, r := range rows {
		if r.Error != "" {
			complain(a.err, fmt.Errorf("%s: %s", r.Name, r.Error))
		}
	}
	return w.err
}
