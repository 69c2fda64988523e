package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehost/sluice/core/store"
)

// storesEnv names the folder of stores.
const storesEnv = "SLUICE_STORES"

// storesFolder is where stores lie by default.
func storesFolder() (string, error) {
	if dir := os.Getenv(storesEnv); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for stores: %w: set %s, or give --store DIR", err, storesEnv)
	}
	return filepath.Join(cache, "sluice", "stores"), nil
}

// defaultStore is the folder of a store of that name.
func defaultStore(name string) (string, error) {
	root, err := storesFolder()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, name), nil
}

// findStore is the folder that a user means: the one at a path, or where stores lie by default the one of that name, or the
// only one whose name begins so (ingest puts a checksum behind a model's name).
func findStore(name string) string {
	if _, err := os.Stat(name); err == nil || strings.ContainsAny(name, `/\`) || !filepath.IsLocal(name) {
		return name
	}
	if dir, err := defaultStore(name); err == nil {
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
		if all, err := filepath.Glob(globEscape.Replace(dir) + "-*"); err == nil && len(all) == 1 {
			return all[0]
		}
	}
	return name
}

// globEscape takes a name's own characters from a pattern.
var globEscape = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

type storeLsCmd struct {
	JSON bool `name:"json" help:"As JSON."`
}

// storeRow is a store as store ls tells of it.
type storeRow struct {
	Name         string       `json:"name"`
	Dir          string       `json:"dir"`
	State        store.State  `json:"state"`
	Fault        string       `json:"fault,omitempty"`
	Done         float64      `json:"done"` // 0 to 1
	Size         int64        `json:"size"` // bytes on disk
	Architecture string       `json:"architecture,omitempty"`
	From         string       `json:"from,omitempty"`
	Parts        []store.Part `json:"parts,omitempty"`
	Changed      time.Time    `json:"changed"`
}

// Run lists the stores in the default place.
func (c *storeLsCmd) Run(a *app) error {
	root, err := storesFolder()
	if err != nil {
		return err
	}
	list, err := store.List(root)
	if err != nil {
		return err
	}
	rows := []storeRow{}
	for _, x := range list {
		rows = append(rows, rowOf(x))
	}
	if c.JSON {
		return a.printJSON(rows)
	}
	w := &errWriter{w: a.out}
	if len(rows) == 0 {
		fmt.Fprintf(a.err, "host: no stores in %s\n", root)
		return nil
	}
	table(w, func(t io.Writer) {
		fmt.Fprintln(t, "STORE\tSTATE\tSIZE\tARCHITECTURE\tFROM\tCHANGED")
		for _, x := range rows {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", quoted(x.Name), x.state(), size(uint64(x.Size)), quoted(x.Architecture), quoted(x.From), x.Changed.Format(time.DateTime))
		}
	})
	return w.err
}

func rowOf(x store.Info) storeRow {
	row := storeRow{Name: filepath.Base(x.Dir), Dir: x.Dir, State: x.State, Fault: x.Fault, Done: x.Done, Size: x.Size, Changed: x.Changed}
	if m := x.Manifest; m != nil {
		row.Architecture, row.From, row.Parts = m.Architecture, m.Parts[0].Name, m.Parts
	}
	if x.State == store.Complete {
		row.Done = 1
	}
	return row
}

// state is a store's state for people.
func (x storeRow) state() string {
	if x.State == store.Unfinished {
		return fmt.Sprintf("%d%% ingested", int(100*x.Done))
	}
	return string(x.State)
}

type storeRmCmd struct {
	Store string `arg:"" name:"store" help:"The store's folder, or its name in the default place, as store ls shows it."`
	Yes   bool   `short:"y" help:"Don't ask."`
}

// Run deletes a store.
func (c *storeRmCmd) Run(a *app) error {
	dir := findStore(c.Store)
	info, err := store.Look(dir)
	if err != nil {
		return err
	}
	if !c.Yes {
		fmt.Fprintf(a.err, "host: delete %s (%s, %s)? y or n: ", dir, rowOf(info).state(), size(uint64(info.Size)))
		answer, _ := bufio.NewReader(io.LimitReader(a.in, 100)).ReadString('\n') // whatever ends it, only y is yes
		if answer = strings.TrimSpace(answer); answer != "y" && answer != "yes" {
			return errors.New("nothing was deleted: answer y, or give --yes")
		}
	}
	return store.Remove(dir)
}

type storeVerifyCmd struct {
	Store string `arg:"" name:"store" help:"The store's folder, or its name in the default place, as store ls shows it."`
}

// Help is the command's long help.
func (storeVerifyCmd) Help() string {
	return `Reads all of a store and compares it with its checksums. Each fault is a line on standard output, and the exit code is 1 where there is one.`
}

// Run verifies a store.
func (c *storeVerifyCmd) Run(a *app) error {
	dir := findStore(c.Store)
	shown := a.transfer("verifying")
	faults, err := store.Verify(a.ctx, dir, shown.update)
	shown.done()
	if err != nil {
		return err
	}
	for _, f := range faults {
		if _, err := fmt.Fprintln(a.out, f); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s: %s: ingest again with --force", dir, plural(len(faults), "fault"))
	}
	_, err = fmt.Fprintf(a.out, "%s: all checksums are right\n", dir)
	return err
}
