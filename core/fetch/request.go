package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// headway is how many bytes a request must have brought not to count as failed
	// though it was cut off or got less than it asked for: a server that gives a
	// byte a request would keep us for ever.
	headway = 16 << 10
	// trickle is how many bytes make a request not stalled.
	trickle = 4 << 10
	// longestWait bounds the wait between tries, whatever the server asks for.
	longestWait = 30 * time.Second
)

// permanent is a failure that trying again does not mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// later is a failure with the time that the server asks to wait.
type later struct {
	error
	wait time.Duration
}

// ErrChanged says that the file is not the one that was opened.
var ErrChanged = errors.New("the file has changed on the server")

// fill reads all of p at off, in as many requests as it takes.
func (r *Remote) fill(p []byte, off int64) (int, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
	done := 0
	for failures := 0; done < len(p); {
		n, err := r.request(p[done:], off+int64(done))
		done += n
		if err == nil && n < headway && done < len(p) {
			err = fmt.Errorf("the server gives %d bytes an answer, want all that are asked for, or at least %d", n, headway)
		}
		if err == nil {
			continue // a server may give less than was asked for
		}
		if n >= headway {
			failures = 0
		}
		failures++
		if err := r.pause(err, failures); err != nil {
			return done, fmt.Errorf("fetch: %s: byte %d: %w", r.shown, off+int64(done), err)
		}
	}
	return done, nil
}

// pause waits after a failure, or says why there is no use.
func (r *Remote) pause(failure error, failures int) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if errors.As(failure, new(permanent)) {
		return failure
	}
	if failures >= r.o.Tries {
		return fmt.Errorf("gave up after %d tries: %w", failures, failure)
	}
	wait := min(r.o.Backoff<<min(failures-1, 16), longestWait)
	wait = wait/2 + rand.N(wait/2+1) // so that many readers don't come back at once
	var asked later
	if errors.As(failure, &asked) {
		wait = min(max(wait, asked.wait), longestWait)
	}
	if r.o.Retry != nil {
		r.o.Retry(fmt.Errorf("fetch: %s: %w", r.shown, failure), wait)
	}
	select {
	case <-time.After(wait):
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// request makes one request for p at off and returns how much of it came.
func (r *Remote) request(p []byte, off int64) (int, error) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	timer := time.AfterFunc(r.o.Stall, cancel)
	defer timer.Stop()
	n, err := r.exchange(ctx, p, off, func() { timer.Reset(r.o.Stall) })
	if err != nil && ctx.Err() != nil && r.ctx.Err() == nil {
		return n, fmt.Errorf("nothing came for %v", r.o.Stall)
	}
	return n, hideURL(err)
}

// exchange sends a request and reads its answer; alive is called while bytes come.
func (r *Remote) exchange(ctx context.Context, p []byte, off int64, alive func()) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return 0, permanent{err}
	}
	req.Header.Set("User-Agent", "sluice")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1))
	if strings.HasPrefix(r.etag, `"`) { // weak ones don't promise equal bytes
		req.Header.Set("If-Range", r.etag)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	alive()
	n, err := r.check(resp, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	return readBody(resp.Body, p[:n], alive)
}

// readBody reads all of p.
func readBody(body io.Reader, p []byte, alive func()) (int, error) {
	done, counted := 0, 0
	for done < len(p) {
		n, err := body.Read(p[done:])
		done += n
		if done-counted >= trickle {
			counted = done
			alive()
		}
		if err != nil && done < len(p) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return done, fmt.Errorf("the answer ended after %d of %d bytes: %w", done, len(p), err)
		}
	}
	return done, nil
}

// check says how many bytes of the want at off the answer will give, at least one.
func (r *Remote) check(resp *http.Response, off, want int64) (int64, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusPartialContent:
		return r.checkRange(resp, off, want)
	case code == http.StatusOK && r.size < 0:
		return 0, permanent{errors.New("the server sends whole files only, want one that answers ranges (Accept-Ranges: bytes): download the file first, then give its path")}
	case code == http.StatusOK, code == http.StatusPreconditionFailed, code == http.StatusRequestedRangeNotSatisfiable && r.size >= 0:
		return 0, permanent{fmt.Errorf("%w (status %s, %s, was %s)", ErrChanged, resp.Status, describe(validators(resp)), describe(r.etag, r.modified))}
	case code == http.StatusRequestedRangeNotSatisfiable:
		return 0, permanent{errors.New("the file is empty")}
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return 0, later{fmt.Errorf("have status %s", resp.Status), retryAfter(resp)}
	}
	return 0, permanent{fmt.Errorf("have status %s: check the address", resp.Status)}
}

// checkRange checks an answer of status 206 against what was asked for and what
// is known of the file; of the first answer it takes that knowledge.
func (r *Remote) checkRange(resp *http.Response, off, want int64) (int64, error) {
	have := resp.Header.Get("Content-Range")
	first, last, total, ok := parseRange(have)
	switch {
	case !ok:
		return 0, permanent{fmt.Errorf("have Content-Range %.80q, want bytes FIRST-LAST/SIZE: the server does not tell what it sends", have)}
	case first != off || last < first || last-first >= want || last >= total:
		return 0, permanent{fmt.Errorf("have Content-Range %.80q, want bytes %d-%d: the server sends other bytes than were asked for", have, off, off+want-1)}
	case resp.ContentLength >= 0 && resp.ContentLength != last-first+1:
		return 0, permanent{fmt.Errorf("have Content-Length %d and Content-Range %.80q, want both to be the same length: the server contradicts itself", resp.ContentLength, have)}
	case resp.Header.Get("Content-Encoding") != "" && resp.Header.Get("Content-Encoding") != "identity":
		return 0, permanent{fmt.Errorf("have Content-Encoding %.40q, want the file's own bytes", resp.Header.Get("Content-Encoding"))}
	}
	etag, modified := validators(resp)
	if r.size < 0 {
		r.size, r.etag, r.modified = total, etag, modified
		return last - first + 1, nil
	}
	if total != r.size || other(etag, r.etag) || other(modified, r.modified) {
		return 0, permanent{fmt.Errorf("%w: have %d bytes, %s, want %d bytes, %s",
			ErrChanged, total, describe(etag, modified), r.size, describe(r.etag, r.modified))}
	}
	return last - first + 1, nil
}

// validators are an answer's ETag and Last-Modified.
func validators(resp *http.Response) (etag, modified string) {
	return resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
}

// other says whether a validator differs; one that is missing differs from none.
func other(a, b string) bool { return a != "" && b != "" && a != b }

// describe is validators for people.
func describe(etag, modified string) string {
	return fmt.Sprintf("ETag %.80q, modified %.40q", etag, modified)
}

// parseRange reads "bytes FIRST-LAST/SIZE".
func parseRange(s string) (first, last, total int64, ok bool) {
	rest, ok1 := strings.CutPrefix(s, "bytes ")
	span, size, ok2 := strings.Cut(rest, "/")
	a, b, ok3 := strings.Cut(span, "-")
	if !ok1 || !ok2 || !ok3 {
		return 0, 0, 0, false
	}
	for _, x := range []struct {
		text string
		to   *int64
	}{{a, &first}, {b, &last}, {size, &total}} {
		n, err := strconv.ParseUint(x.text, 10, 63)
		if err != nil {
			return 0, 0, 0, false
		}
		*x.to = int64(n)
	}
	return first, last, total, true
}

// retryAfter is the wait that an answer asks for, 0 where it says nothing in seconds.
func retryAfter(resp *http.Response) time.Duration {
	n, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

// hideURL takes the address, which may hold secrets, out of the client's errors.
func hideURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
