//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/store"
)

// Killed at random moments, again and again, an ingest ends in the same store as one that
// was left alone, and never in something that can be taken for it.
func TestIngestKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	name := filepath.Base(tiny)
	site := newSite(t, map[string][]byte{name: readFile(t, tiny)})
	site.limit.set(8e6)
	clean := filepath.Join(t.TempDir(), "clean")
	install(t) // before the clock runs
	begin := time.Now()
	runHost(t, "", "ingest", "-m", site.url+"/"+name, "--store", clean).ok(t)
	whole := time.Since(begin)
	kills := 50
	if testing.Short() {
		kills = 8
	}
	dir, stores, resumed := filepath.Join(t.TempDir(), "s0"), 1, 0
	run := func() []string { return []string{"ingest", "-m", site.url + "/" + name, "--store", dir} }
	for n := 0; n < kills; {
		cmd := command(t, run()...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		most := int64(whole * 11 / 10)
		after := time.Duration(max(r.Int64N(most), r.Int64N(most))) // the plugin's start matters less
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		s, openErr := store.Open(dir)
		switch status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); {
		case ok && status.Signaled():
			n++
			if info, err := store.Look(dir); err == nil && info.State == store.Unfinished && info.Done > 0 {
				resumed++
			}
		case err != nil:
			t.Fatalf("seed %d: %v\n%s", seed, err, &errs)
		default:
			if openErr != nil {
				t.Fatalf("seed %d: a finished store: %v", seed, openErr)
			}
		}
		if openErr != nil {
			continue
		}
		// What can be opened is whole, also where the kill came right after. The lock's
		// holder, and a journal that there was no time to remove, mean nothing.
		s.Close()
		runHost(t, "", run()...).ok(t)
		sameStore(t, dir, clean)
		dir = filepath.Join(t.TempDir(), fmt.Sprint("s", stores))
		stores++
	}
	runHost(t, "", run()...).ok(t)
	sameStore(t, dir, clean)
	t.Logf("%d kills within %v each, %d stores, %d kills left a part that was gone on with", kills, whole, stores, resumed)
	if resumed < kills/10 || stores < 2 {
		t.Errorf("seed %d: have %d kills in mid-ingest and %d stores, want some of both", seed, resumed, stores)
	}
}

// Ctrl-C ends an ingest at once and says that it can go on, which it does.
func TestIngestInterrupted(t *testing.T) {
	name := filepath.Base(tiny)
	site := newSite(t, map[string][]byte{name: readFile(t, tiny)})
	dir := filepath.Join(t.TempDir(), "s")
	args := []string{"ingest", "-m", site.url + "/" + name, "--store", dir}
	site.limit.set(3e6)
	l := start(t, args...)
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if info, err := store.Look(dir); err == nil && info.Done > 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("nothing was written: %v\n%s", err, l.stderr)
		}
	}
	if rest := l.interrupt(); rest != "" {
		t.Errorf("have output %q", rest)
	}
	l.waitFor("interrupted; the same command goes on")
	if _, err := store.Open(dir); !errors.Is(err, store.ErrUnfinished) {
		t.Errorf("have error %v, want the store unfinished", err)
	}
	site.limit.set(0)
	r := runHost(t, "", args...)
	r.ok(t)
	if !bytes.Contains([]byte(r.stderr), []byte("of it from before")) {
		t.Errorf("have %q, want it gone on", r.stderr)
	}
	clean := filepath.Join(t.TempDir(), "clean")
	runHost(t, "", "ingest", "-m", tiny, "--store", clean).ok(t)
	sameStore(t, dir, clean)
}

// A second ingest into the same folder is told who holds it, and does no harm.
func TestIngestTwice(t *testing.T) {
	name := filepath.Base(tiny)
	site := newSite(t, map[string][]byte{name: readFile(t, tiny)})
	site.limit.set(6e6)
	dir := filepath.Join(t.TempDir(), "s")
	args := []string{"ingest", "-m", site.url + "/" + name, "--store", dir}
	l := start(t, args...)
	for end := time.Now().Add(patience); !store.IsStore(dir); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing was written\n%s", l.stderr)
		}
	}
	holder := fmt.Sprintf("process %d on ", l.cmd.Process.Pid)
	runHost(t, "", "ingest", "-m", tiny, "--store", dir, "--force").fails(t, "another process is at work", holder)
	runHost(t, "", "store", "rm", "--yes", dir).fails(t, holder)
	if err := l.cmd.Wait(); err != nil {
		t.Fatalf("the first: %v\n%s", err, l.stderr)
	}
	clean := filepath.Join(t.TempDir(), "clean")
	runHost(t, "", "ingest", "-m", tiny, "--store", clean).ok(t)
	sameStore(t, dir, clean)
}
