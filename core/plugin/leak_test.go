package plugin

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestNoLeaks starts good and bad plugins and counts what is left of them in
// this process. It is not parallel: others would be counted too.
func TestNoLeaks(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_ = start(t, options(testBinary)).Close() // what is set up once
	time.Sleep(500 * time.Millisecond)        // other tests' ends, too
	before := held(t)
	for _, name := range []string{"well", "exit-early", "garbage", "deaf", "elsewhere", "protocol-2", "another"} {
		o := options(as(t, name))
		o.StartTimeout = time.Second
		p, err := Start(context.Background(), o)
		if err == nil {
			_, _ = plan(t, p, "crash", 0)
			_ = p.Close()
		}
		if (err == nil) != (name == "well") {
			t.Errorf("%s: %v", name, err)
		}
	}
	after := held(t)
	for range 100 {
		if after.goroutines <= before.goroutines && after.files <= before.files && after.folders <= before.folders {
			return
		}
		time.Sleep(50 * time.Millisecond)
		after = held(t)
	}
	t.Errorf("have %+v after, %+v before", after, before)
}

type holdings struct{ goroutines, files, folders int }

func held(t *testing.T) holdings {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc to count open files in")
	}
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), "plugin-dir*"))
	if err != nil {
		t.Fatal(err)
	}
	return holdings{runtime.NumGoroutine(), len(files), len(folders)}
}
