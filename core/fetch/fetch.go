// Package fetch reads a file behind an HTTP or HTTPS URL by ranges, as an
// io.ReaderAt. Connections that drop, stall or end early are taken up where they
// broke; a file that changes on the way, and a server that has no ranges or
// contradicts itself, is an error. It writes nothing to disk and knows nothing of
// what the file holds.
//
// Start at [Open].
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"sync"
	"time"
)

// Options shape how a file is read; the zero value is good.
type Options struct {
	// Stall is how long a request may go without slow bytes (a few KiB) before it
	// is made anew; 0 is 30 s.
	Stall time.Duration
	// Tries is how many requests in a row may fail without bringing anything; 0 is 8.
	Tries int
	// Backoff is the wait after the first failure; it doubles with each further
	// one, up to half a minute. 0 is 500 ms.
	Backoff time.Duration
	// Parallel is how many requests run at once; 0 is 4.
	Parallel int
	// Retry, where not nil, is told of each failure that is tried again after wait.
	// It may be called from several goroutines at once.
	Retry func(failure error, wait time.Duration)
}

// Remote is a file behind a URL. Its methods may be called from several
// goroutines at once.
type Remote struct {
	ctx    context.Context // of all reads, since io.ReaderAt has none
	url    string
	shown  string // the URL without what may be secret
	client *http.Client
	o      Options
	slots  chan struct{} // one for each request that may run

	size     int64
	etag     string
	modified string

	mu     sync.Mutex
	window []byte // bytes from start on
	start  int64
}

var _ io.ReaderAt = (*Remote)(nil)

// windowBytes is what a small read from the start of the file on brings, so that a
// header read in little steps costs few requests.
const windowBytes = 1 << 20

// Open asks for a file's size; nothing more is read yet. ctx ends all later reads
// too. It fails where the address is none, the file is not there, or the server
// has no ranges or does not tell the size.
func Open(ctx context.Context, address string, o Options) (*Remote, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("fetch: not a URL: %w", hideURL(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("fetch: %s: want a URL of the form https://host/path", u.Redacted())
	}
	r := &Remote{ctx: ctx, url: address, shown: u.Scheme + "://" + u.Host + u.EscapedPath(), client: newClient(), o: o.withDefaults(), size: -1}
	r.slots = make(chan struct{}, r.o.Parallel)
	var first [1]byte
	if _, err := r.fill(first[:], 0); err != nil {
		return nil, err
	}
	return r, nil
}

func (o Options) withDefaults() Options {
	if o.Stall <= 0 {
		o.Stall = 30 * time.Second
	}
	if o.Tries <= 0 {
		o.Tries = 8
	}
	if o.Backoff <= 0 {
		o.Backoff = 500 * time.Millisecond
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	return o
}

// newClient makes a client that does not leave HTTPS once it is on it.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // a range of compressed bytes is no range of the file
	t.ResponseHeaderTimeout = 30 * time.Second
	return &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= 10:
			return permanent{errors.New("more than 10 redirects")}
		case req.URL.Scheme != "https" && req.URL.Scheme != "http":
			return permanent{fmt.Errorf("redirected to %s, want http or https", req.URL.Scheme)}
		case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
			return permanent{errors.New("redirected from https to " + req.URL.Scheme + ", which is not safe")}
		}
		return nil
	}}
}

// Size is the file's length in bytes.
func (r *Remote) Size() int64 { return r.size }

// URL is the address without user, password and query, for people.
func (r *Remote) URL() string { return r.shown }

// Name is the last element of the address's path; it may be any text.
func (r *Remote) Name() string {
	u, err := url.Parse(r.url)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}

// Validator is what the server says changes when the file does: "etag ..." or
// "modified ..."; empty where it says nothing.
func (r *Remote) Validator() string {
	switch {
	case r.etag != "":
		return "etag " + r.etag
	case r.modified != "":
		return "modified " + r.modified
	}
	return ""
}

// ReadAt reads len(p) bytes at off; it follows io.ReaderAt. Each read is a request,
// but for small ones that follow on each other from the start of the file: these
// are served from a window of 1 MiB.
func (r *Remote) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("fetch: %s: read at byte %d, want at least 0", r.shown, off)
	}
	if off >= r.size {
		return 0, io.EOF
	}
	var end error
	if left := r.size - off; int64(len(p)) > left {
		p, end = p[:left], io.EOF
	}
	n, done, err := r.fromWindow(p, off)
	if !done {
		n, err = r.fill(p, off)
	}
	if err == nil {
		err = end
	}
	return n, err
}

// fromWindow serves a small read, which lies within the file, if it goes on where
// the window is.
func (r *Remote) fromWindow(p []byte, off int64) (n int, done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := r.start + int64(len(r.window))
	switch {
	case len(p) >= windowBytes:
		r.window, r.start = nil, 0 // the header is behind us
		return 0, false, nil
	case off >= r.start && off+int64(len(p)) <= end:
		return copy(p, r.window[off-r.start:]), true, nil
	case off != 0 && (r.window == nil || off < r.start || off > end):
		return 0, false, nil
	}
	if r.window == nil {
		r.window = make([]byte, windowBytes)
	}
	r.window = r.window[:min(windowBytes, r.size-off)]
	r.start = off
	if n, err := r.fill(r.window, off); err != nil {
		n = min(n, len(p))
		copy(p, r.window[:n])
		r.window, r.start = nil, 0
		return n, true, err
	}
	return copy(p, r.window), true, nil
}
