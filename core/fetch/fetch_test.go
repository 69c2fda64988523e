package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/fetch"
)

// content is a file of n random bytes.
func content(t testing.TB, n int) []byte {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// quick gives up and tries again fast.
var quick = fetch.Options{Backoff: time.Millisecond, Stall: 5 * time.Second, Tries: 4}

// serve serves b with an ETag; before it, where before says it has answered, nothing.
func serve(t testing.TB, b []byte, before func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && before(w, r) {
			return
		}
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(b))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/some/model.gguf?token=secret"
}

func open(t testing.TB, url string, o fetch.Options) *fetch.Remote {
	t.Helper()
	r, err := fetch.Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check reads at all kinds of places and compares.
func check(t *testing.T, r *fetch.Remote, b []byte) {
	t.Helper()
	for _, c := range []struct{ off, n int }{
		{0, 1}, {0, len(b)}, {1, len(b) - 1}, {len(b) - 1, 1}, {1000, 3}, {1003, 70000}, {900, 50}, {1 << 20, 1 << 20}, {1 << 20, 9}, {len(b) - 10, 20}, {len(b), 1}, {len(b) + 9, 4},
	} {
		p := make([]byte, c.n)
		n, err := r.ReadAt(p, int64(c.off))
		want := b[min(c.off, len(b)):min(c.off+c.n, len(b))]
		wantErr := error(nil)
		if len(want) < c.n {
			wantErr = io.EOF
		}
		if err != wantErr || !bytes.Equal(p[:n], want) {
			t.Errorf("%d at %d: have %d bytes, %v, want %d, %v", c.n, c.off, n, err, len(want), wantErr)
		}
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("have no error for a negative offset")
	}
}

func TestRead(t *testing.T) {
	b := content(t, 3<<20+17)
	var requests atomic.Int64
	var asked atomic.Value
	url := serve(t, b, func(_ http.ResponseWriter, r *http.Request) bool {
		requests.Add(1)
		asked.Store(r.Header.Get("Range"))
		return false
	})
	r := open(t, url, quick)
	if r.Size() != int64(len(b)) || r.Validator() != `etag "one"` || r.Name() != "model.gguf" || strings.Contains(r.URL(), "secret") {
		t.Errorf("have %d bytes, %s, %s, %s", r.Size(), r.Validator(), r.Name(), r.URL())
	}
	check(t, r, b)
	// A header in little steps costs a request per window.
	requests.Store(0)
	r = open(t, url, quick)
	for off := int64(0); off < 2<<20; off += 128 << 10 {
		if _, err := r.ReadAt(make([]byte, 128<<10), off); err != nil {
			t.Fatal(err)
		}
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("have %d requests for 2 MiB in small steps, want 3", n)
	}
	// Elsewhere each read asks for what it wants.
	for _, off := range []int64{3 << 20, 100, 3 << 20, 2<<20 + 5} {
		requests.Store(0)
		if _, err := r.ReadAt(make([]byte, 10), off); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("bytes=%d-%d", off, off+9); asked.Load() != want || requests.Load() != 1 {
			t.Errorf("at %d: have %d requests, the last for %v, want one for %s", off, requests.Load(), asked.Load(), want)
		}
	}
}

// What breaks now and then is mended, and what comes is right.
func TestMends(t *testing.T) {
	b := content(t, 3<<20+17)
	for name, before := range map[string]func(n int64, w http.ResponseWriter, r *http.Request) bool{
		"status 503": func(n int64, w http.ResponseWriter, _ *http.Request) bool {
			if n%3 != 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return n%3 != 0
		},
		"status 429": func(n int64, w http.ResponseWriter, _ *http.Request) bool {
			if n%2 != 0 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return n%2 != 0
		},
		"drops at once":          func(n int64, w http.ResponseWriter, _ *http.Request) bool { return n%3 != 0 && hangUp(w) },
		"drops in mid-body":      func(_ int64, w http.ResponseWriter, r *http.Request) bool { return part(w, r, b, 300<<10, hangUp) },
		"stalls in mid-body":     func(_ int64, w http.ResponseWriter, r *http.Request) bool { return part(w, r, b, 900<<10, stall(r)) },
		"stalls before the head": func(n int64, w http.ResponseWriter, r *http.Request) bool { return n%3 != 0 && stall(r)(w) },
		"gives less than asked": func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			var first, last int
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, min(last, first+500000)))
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			url := serve(t, b, func(w http.ResponseWriter, r *http.Request) bool { return before(n.Add(1), w, r) })
			var told atomic.Int64
			o := quick
			if strings.Contains(name, "stalls") {
				o.Stall, o.Tries = 200*time.Millisecond, 20 // on a busy machine others stall, too
			}
			o.Retry = func(err error, _ time.Duration) {
				told.Add(1)
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("have a secret in %q", err)
				}
			}
			check(t, open(t, url, o), b)
			if told.Load() == 0 && name != "gives less than asked" {
				t.Error("have no word of a failure")
			}
		})
	}
}

// hangUp cuts the connection.
func hangUp(w http.ResponseWriter) bool {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		c.Close()
	}
	return true
}

// stall waits until the other side has had enough.
func stall(r *http.Request) func(http.ResponseWriter) bool {
	return func(http.ResponseWriter) bool { <-r.Context().Done(); return true }
}

// part answers a range with at most so many of its bytes and then ends it badly.
func part(w http.ResponseWriter, r *http.Request, b []byte, most int, end func(http.ResponseWriter) bool) bool {
	var first, last int
	fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
	head(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(b)), last-first+1)
	_, _ = w.Write(b[first:min(last+1, first+most)])
	_ = http.NewResponseController(w).Flush()
	if last+1 <= first+most {
		return true
	}
	return end(w)
}

// head is the head of an answer of status 206.
func head(w http.ResponseWriter, contentRange string, length int) {
	w.Header().Set("Content-Range", contentRange)
	w.Header().Set("Content-Length", fmt.Sprint(length))
	w.Header().Set("ETag", `"one"`)
	w.WriteHeader(http.StatusPartialContent)
}

func TestBadAddress(t *testing.T) {
	for _, url := range []string{"", "model.gguf", "file:///etc/passwd", "ftp://host/x", "https://", "http://a b/", "://x"} {
		if _, err := fetch.Open(context.Background(), url, quick); err == nil || !strings.HasPrefix(err.Error(), "fetch: ") {
			t.Errorf("%q: have error %v", url, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	b := content(t, 2<<20)
	to := serve(t, b, nil)
	from := serve(t, nil, func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, to, http.StatusFound)
		return true
	})
	check(t, open(t, from, quick), b)
}

// HTTPS works, and is not left for HTTP on the way.
func TestHTTPS(t *testing.T) {
	b := content(t, 2<<20)
	plain := serve(t, b, nil)
	away := false
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away {
			http.Redirect(w, r, plain, http.StatusFound)
			return
		}
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(b))
	}))
	t.Cleanup(s.Close)
	transport := http.DefaultTransport.(*http.Transport)
	old := transport.TLSClientConfig
	transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	t.Cleanup(func() { transport.TLSClientConfig = old })
	r := open(t, s.URL+"/m", quick)
	if v := r.Validator(); v != "modified Sun, 09 Sep 2001 01:46:40 GMT" {
		t.Errorf("have validator %q", v)
	}
	check(t, r, b)
	away = true
	if _, err := fetch.Open(context.Background(), s.URL, quick); err == nil || !strings.Contains(err.Error(), "redirected from https to http") {
		t.Errorf("have error %v, want HTTPS not left", err)
	}
}

// The end of the context ends reads, also one that waits to try again.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	url := serve(t, content(t, 2<<20), lie(2, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	r, err := fetch.Open(ctx, url, fetch.Options{Backoff: time.Hour, Retry: func(error, time.Duration) { cancel() }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("have error %v, want that of the context", err)
	}
}

// No more requests run at once than was said.
func TestParallel(t *testing.T) {
	b := content(t, 8<<20)
	var now, most atomic.Int64
	url := serve(t, b, func(http.ResponseWriter, *http.Request) bool {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(5 * time.Millisecond)
		now.Add(-1)
		return false
	})
	o := quick
	o.Parallel = 3
	r := open(t, url, o)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			off := int64(i) * 300000
			p := make([]byte, 1<<20)
			if n, err := r.ReadAt(p, off); err != nil || !bytes.Equal(p, b[off:off+int64(n)]) {
				t.Errorf("at %d: %v", off, err)
			}
			if n, err := r.ReadAt(p[:9000], off+7); err != nil || !bytes.Equal(p[:n], b[off+7:off+7+int64(n)]) {
				t.Errorf("at %d: %v", off+7, err)
			}
		})
	}
	all.Wait()
	if n := most.Load(); n > 3 || n < 2 {
		t.Errorf("have %d requests at once, want up to 3", n)
	}
}
