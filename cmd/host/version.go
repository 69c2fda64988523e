package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/sluicehost/sluice/sdk/rpc"
)

// version is set by the linker (Makefile).
var version = "unknown"

type versionCmd struct {
	JSON bool `name:"json" help:"As JSON."`
}

// Run prints what this program is.
func (c *versionCmd) Run(a *app) error {
	if c.JSON {
		return a.printJSON(map[string]any{"version": version, "go": runtime.Version(),
			"platform": runtime.GOOS + "/" + runtime.GOARCH, "protocols": rpc.Protocols()})
	}
	_, err := fmt.Fprintf(a.out, "host %s (%s, %s/%s, plugin protocol %v)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, rpc.Protocols())
	return err
}

// printJSON writes v on several lines, for people and programs.
func (a *app) printJSON(v any) error { return writeJSON(a.out, v) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
