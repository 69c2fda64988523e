package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/fetch"
)

// lie is a server that answers as it should at first and then otherwise; with at 1 from the start.
func lie(at int64, answer func(w http.ResponseWriter, r *http.Request)) func(w http.ResponseWriter, r *http.Request) bool {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		if n.Add(1) < at {
			return false
		}
		answer(w, r)
		return true
	}
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func claim(contentRange string, length int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		head(w, contentRange, length)
		_, _ = w.Write(make([]byte, length))
	}
}

// A server that can't be right is an error that says why, without a second try.
func TestRefuses(t *testing.T) {
	b := content(t, 3<<20)
	whole := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) }
	as := func(etag string, modified int64, b []byte) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", etag)
			http.ServeContent(w, r, "", time.Unix(modified, 0), bytes.NewReader(b))
		}
	}
	for name, c := range map[string]struct {
		at      int64 // the first request that is answered so
		answer  func(w http.ResponseWriter, r *http.Request)
		want    string
		changed bool
	}{
		"no ranges":        {1, whole, "the server sends whole files only", false},
		"not there":        {1, status(404), "have status 404 Not Found", false},
		"forbidden":        {1, status(403), "have status 403", false},
		"empty":            {1, status(416), "the file is empty", false},
		"size unknown":     {1, claim("bytes 0-0/*", 1), `have Content-Range "bytes 0-0/*"`, false},
		"size negative":    {1, claim("bytes 0-0/-5", 1), "does not tell", false},
		"size of 2^63":     {1, claim("bytes 0-0/9223372036854775808", 1), "does not tell", false},
		"size of nothing":  {1, claim("bytes 0-0/0", 1), "other bytes than were asked for", false},
		"no content range": {1, claim("", 1), "does not tell", false},
		"other unit":       {1, claim("lines 0-0/5", 1), "does not tell", false},
		"more than asked":  {1, claim("bytes 0-1/5", 2), "other bytes", false},
		"other place":      {2, claim("bytes 5-9/3145728", 5), "other bytes", false},
		"backwards":        {2, claim("bytes 0--1/3145728", 0), "does not tell", false},
		"length lies":      {2, claim("bytes 0-99/3145728", 98), "contradicts itself", false},
		"packed": {2, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			claim("bytes 0-99/3145728", 100)(w, r)
		}, "Content-Encoding", false},
		"size changes":          {2, claim("bytes 0-99/3145729", 100), "want 3145728 bytes", true},
		"etag changes":          {2, as(`"two"`, 1e9, b), "has changed", true},
		"date changes":          {2, as(`"one"`, 1e9+5, b), "modified", true},
		"shorter":               {2, as(`"one"`, 1e9, b[:100]), "has changed", true},
		"whole file in the end": {2, whole, "has changed", true},
		"not there any more":    {2, status(410), "have status 410", false},
		"precondition failed":   {2, status(412), "has changed", true},
		"redirects for ever":    {1, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "more than 10 redirects", false},
		"redirects to a file": {1, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, "redirected to file", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, b, lie(c.at, c.answer))
			r, err := fetch.Open(context.Background(), url, fetch.Options{Backoff: time.Hour})
			if err == nil {
				// The whole file, so that a shorter one is noticed.
				_, err = r.ReadAt(make([]byte, len(b)), 0)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, fetch.ErrChanged) != c.changed {
				t.Fatalf("have error %v, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "/some/model.gguf") {
				t.Errorf("have error %v, want the address in it, without its query", err)
			}
		})
	}
}

// A server that never gets better, or gives a little each time, is given up.
func TestGivesUp(t *testing.T) {
	b := content(t, 3<<20)
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"status 500": status(500),
		"drops":      func(w http.ResponseWriter, _ *http.Request) { hangUp(w) },
		"a few bytes at a time": func(w http.ResponseWriter, r *http.Request) {
			part(w, r, b, 1000, hangUp)
		},
		"a few bytes an answer": func(w http.ResponseWriter, r *http.Request) {
			var at int
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &at)
			head(w, fmt.Sprintf("bytes %d-%d/%d", at, at+99, len(b)), 100)
			_, _ = w.Write(b[at : at+100])
		},
		"drips": func(w http.ResponseWriter, r *http.Request) {
			var at int
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &at)
			part(w, r, b, 1000, func(w http.ResponseWriter) bool {
				for at += 1000; r.Context().Err() == nil; at++ {
					_, _ = w.Write(b[at : at+1])
					_ = http.NewResponseController(w).Flush()
					time.Sleep(20 * time.Millisecond)
				}
				return true
			})
		},
		"ends early": func(w http.ResponseWriter, r *http.Request) {
			var first, last int
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
			const end = 1 << 20 // all that there is
			if first >= end {
				hangUp(w)
				return
			}
			part(w, r, b, end-first, hangUp)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := quick
			if name == "drips" {
				o.Stall = time.Second
			}
			r := open(t, serve(t, b, lie(2, answer)), o)
			p := make([]byte, len(b))
			n, err := r.ReadAt(p, 0)
			if err == nil || !strings.Contains(err.Error(), "gave up after 4 tries") || !bytes.Equal(p[:n], b[:n]) {
				t.Errorf("have %d bytes, %v, want it given up", n, err)
			}
			if name == "ends early" && n != 1<<20 {
				t.Errorf("have %d bytes, want all 1 MiB that there were", n)
			}
		})
	}
}
