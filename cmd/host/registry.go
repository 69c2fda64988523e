package main

import (
	"fmt"
	"io"
	"strings"
)

type registryCmd struct {
	registryPath
	JSON bool `name:"json" help:"As JSON."`
}

// Run prints the registry; it starts no plugin.
func (c *registryCmd) Run(a *app) error {
	p, err := registryFlags{registryPath: c.registryPath}.plugins(a)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(p.Registry)
	}
	w := &errWriter{w: a.out}
	fmt.Fprintf(w, "%s (lock: %s)\n\n", p.Path, p.Lock)
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "PLUGIN\tVERSION\tARCHITECTURES\tPROTOCOL\tSTATE")
		for _, x := range p.Plugins {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", x.Name, x.Version, strings.Join(x.Architectures, ","), numbers(x.Protocols), stateOf(x))
		}
	})
	fmt.Fprintln(w)
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "MODEL\tARCHITECTURE\tSIZE\tVERIFIED\tFROM")
		for _, f := range p.Files {
			from := "ships with the registry"
			if f.Repo != "" {
				from = f.Repo
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", f.Name, f.Architecture, size(uint64(f.Size())), f.Verified, from)
		}
	})
	return w.err
}

// numbers is a list of protocol versions.
func numbers(versions []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(versions), " ", ","), "[]")
}
