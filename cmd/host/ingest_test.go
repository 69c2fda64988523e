package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPartAddresses(t *testing.T) {
	for address, want := range map[string][]string{
		"https://h/a/m.gguf?x=1":                   {"https://h/a/m.gguf?x=1"},
		"http://u@h/a%20b/m-00002-of-00002.gguf?x": {"http://u@h/a%20b/m-00001-of-00002.gguf?x", "http://u@h/a%20b/m-00002-of-00002.gguf?x"},
		"http://h/m-00001-of-00001.gguf":           {"http://h/m-00001-of-00001.gguf"},
		"http://h":                                 {"http://h"},
	} {
		if have, err := partAddresses(address); err != nil || !slices.Equal(have, want) {
			t.Errorf("%s: have %q, %v, want %q", address, have, err, want)
		}
	}
	for _, address := range []string{"http://h/m-00003-of-00002.gguf", "http://u:secret@h:x/m"} {
		if _, err := partAddresses(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: have error %v", address, err)
		}
	}
	for model, want := range map[string]bool{"http://h/x": true, "HTTPS://h/x": true, "file://x": false, "a.gguf": false, "http:/x": false, "": false} {
		if isAddress(model) != want {
			t.Errorf("%s: have %v as an address, want %v", model, !want, want)
		}
	}
}

func TestPace(t *testing.T) {
	for _, c := range []struct {
		rate float64
		left uint64
		want string
	}{
		{1e6, 5e6, "1.00 MB/s, 6s left"}, {2.5e8, 3e10, "250 MB/s, 2m1s left"}, {0, 5, "0 B/s"}, {1, 1 << 62, "1 B/s"}, {5, 0, "5 B/s, 1s left"},
	} {
		if have := pace(c.rate, c.left); have != c.want {
			t.Errorf("have %q, want %q", have, c.want)
		}
	}
}

// What was there before the first call is in the part done, but not in the rate.
func TestTransfer(t *testing.T) {
	var b bytes.Buffer
	p := (&app{err: &b}).transfer("ingesting")
	p.terminal = true
	p.update(8e9, 10e9)
	p.at, p.next = p.at.Add(-10*time.Second), time.Time{}
	p.update(8e9+1e8, 10e9)
	p.done()
	if have := b.String(); !strings.Contains(have, "ingesting: 81% of 10.0 GB, 10.0 MB/s, 3m1") || !strings.HasSuffix(have, "\x1b[K") {
		t.Errorf("have %q", have)
	}
}
