package plugintest

import (
	"testing"

	"github.com/sluicehost/sluice/sdk/program"
)

// results checks that every block names its result once, whatever the number of rows.
func results(t *testing.T, p *program.Plan, prog *program.Program, rows uint32) {
	t.Helper()
	named := make([]int, p.GetModel().GetLayers())
	for _, s := range prog.GetSections() {
		for _, d := range s.Pick(rows).GetDispatches() {
			if r := d.GetResult(); r != nil && int(r.GetLayer()) < len(named) {
				named[r.GetLayer()]++
			}
		}
	}
	for i, n := range named {
		if n != 1 {
			t.Errorf("steps of %d rows: layer %d names %d results, want 1 (layer.Result): host verify compares models block by block", rows, i, n)
		}
	}
}
