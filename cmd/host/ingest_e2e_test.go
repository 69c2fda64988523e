package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/store"
)

// slow reads no faster than its rate, all readers of it together.
type slow struct {
	*bytes.Reader
	limit *bandwidth
}

// bandwidth is a number of bytes a second; none holds nothing up.
type bandwidth struct {
	mu    sync.Mutex
	bytes float64
	free  time.Time // when all that went through so far is paid for
}

func (b *bandwidth) set(bytes float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes, b.free = bytes, time.Time{}
}

func (b *bandwidth) wait(n int) {
	b.mu.Lock()
	if now := time.Now(); b.free.Before(now) {
		b.free = now
	}
	if b.bytes > 0 {
		b.free = b.free.Add(time.Duration(float64(n) / b.bytes * float64(time.Second)))
	}
	until := b.free
	b.mu.Unlock()
	time.Sleep(time.Until(until))
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.limit.wait(n)
	return n, err
}

// site serves files at the paths of their names; it may be told to answer otherwise.
type site struct {
	mu     sync.Mutex
	files  map[string][]byte
	etag   string
	answer func(w http.ResponseWriter, r *http.Request) bool // true where it has answered
	limit  bandwidth
	url    string
}

func newSite(t testing.TB, files map[string][]byte) *site {
	t.Helper()
	s := &site{files: files, etag: `"one"`}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	data, ok := s.files[strings.TrimPrefix(r.URL.Path, "/")]
	etag, answer := s.etag, s.answer
	s.mu.Unlock()
	switch {
	case !ok:
		http.NotFound(w, r)
	case answer != nil && answer(w, r):
	default:
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Unix(1e9, 0), &slow{bytes.NewReader(data), &s.limit})
	}
}

// contents are a folder's files.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

// sameStore compares all bytes of two stores' files.
func sameStore(t testing.TB, dir, want string) {
	t.Helper()
	have, wanted := contents(t, dir), contents(t, want)
	for name := range wanted {
		if have[name] != wanted[name] {
			t.Errorf("%s of %s: have other bytes than %s", name, dir, want)
		}
	}
	if len(have) != len(wanted) || len(have) != 6 {
		t.Errorf("%s: have %d files, want %d as %s has", dir, len(have), len(wanted), want)
	}
}

// ok fails the test where a run of the host failed, and returns its output.
func (r result) ok(t testing.TB) string {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("have code %d:\n%s", r.code, r.stderr)
	}
	return strings.TrimSpace(r.stdout)
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A store from an address is that from the file, byte for byte; also of a split model, of
// which any part's address will do.
func TestIngestAddress(t *testing.T) {
	local := filepath.Join(t.TempDir(), "local")
	runHost(t, "", "ingest", "-m", tiny, "--store", local).ok(t)
	site := newSite(t, map[string][]byte{"x/" + filepath.Base(tiny): readFile(t, tiny)})
	remote := filepath.Join(t.TempDir(), "remote")
	if out := runHost(t, "", "ingest", "-m", site.url+"/x/"+filepath.Base(tiny)+"?download=true", "--store", remote).ok(t); out != remote {
		t.Errorf("have output %q, want the folder", out)
	}
	sameStore(t, remote, local)

	m, err := gguftest.Load(tiny)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	paths, err := gguftest.WriteParts(dir, "tiny", m.Split(3, 40, len(m.Tensors)-43))
	if err != nil {
		t.Fatal(err)
	}
	splitLocal, splitRemote := filepath.Join(t.TempDir(), "local"), filepath.Join(t.TempDir(), "remote")
	runHost(t, "", "ingest", "-m", paths[0], "--store", splitLocal).ok(t)
	files := map[string][]byte{}
	for _, p := range paths {
		files[filepath.Base(p)] = readFile(t, p)
	}
	site.set(func() { site.files = files })
	runHost(t, "", "ingest", "-m", site.url+"/"+filepath.Base(paths[1]), "--store", splitRemote).ok(t)
	sameStore(t, splitRemote, splitLocal)
	// The data are those of the one file.
	for _, name := range []string{"dense.bin", "experts.bin", "checksums.bin"} {
		if contents(t, splitLocal)[name] != contents(t, local)[name] {
			t.Errorf("%s: have other bytes than of the model in one file", name)
		}
	}
	site.set(func() { delete(files, filepath.Base(paths[2])) })
	runHost(t, "", "ingest", "-m", site.url+"/"+filepath.Base(paths[1]), "--store", splitRemote, "--force").fails(t, filepath.Base(paths[2]), "404")
}

// A server that can't be relied on makes no store.
func TestIngestBadServer(t *testing.T) {
	data := readFile(t, tiny)
	name := filepath.Base(tiny)
	for what, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request) bool
		want   string
	}{
		"no ranges": {func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write(data); return true }, "sends whole files only"},
		"length lies": {func(w http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("If-Range")
			http.ServeContent(&lying{w}, r, "", time.Time{}, bytes.NewReader(data))
			return true
		}, "cut off or damaged"},
		"truncated": {func(w http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("If-Range")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data[:len(data)-1000]))
			return true
		}, "cut off or damaged"},
		"not a model": {func(w http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("If-Range")
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat("<html>", 100)))
			return true
		}, "not a GGUF model"},
	} {
		t.Run(what, func(t *testing.T) {
			site := newSite(t, map[string][]byte{name: data})
			site.set(func() { site.answer = c.answer })
			dir := filepath.Join(t.TempDir(), "s")
			runHost(t, "", "ingest", "-m", site.url+"/"+name, "--store", dir).fails(t, c.want, name)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Error("the folder was made")
			}
		})
	}
}

// lying tells a size that is half of the file's.
type lying struct{ http.ResponseWriter }

func (l *lying) WriteHeader(code int) {
	var first, last, size int
	if _, err := fmt.Sscanf(l.Header().Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err == nil {
		l.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size/2))
	}
	l.ResponseWriter.WriteHeader(code)
}

// ReadFrom keeps the copying here.
func (l *lying) ReadFrom(r io.Reader) (int64, error) { return io.Copy(l.ResponseWriter, r) }

// A file that changes on the server is noticed on the way and when the ingest goes on.
func TestIngestChanges(t *testing.T) {
	data := readFile(t, tiny)
	name := filepath.Base(tiny)
	site := newSite(t, map[string][]byte{name: data})
	half := len(data) / 2
	changeAt := func(w http.ResponseWriter, r *http.Request) bool {
		var first int
		if fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &first); first > half {
			site.set(func() { site.etag = `"two"`; site.answer = nil })
			w.WriteHeader(http.StatusPreconditionFailed)
			return true
		}
		return false
	}
	site.set(func() { site.answer = changeAt })
	dir := filepath.Join(t.TempDir(), "s")
	ingest := []string{"ingest", "-m", site.url + "/" + name, "--store", dir}
	runHost(t, "", ingest...).fails(t, "has changed on the server", "--force")
	if _, err := store.Open(dir); err == nil {
		t.Error("the store can be opened")
	}
	runHost(t, "", ingest...).fails(t, "has changed since the ingest was begun", `"two"`, `"one"`, "--force")
	runHost(t, "", append(ingest, "--force")...).ok(t)
	clean := filepath.Join(t.TempDir(), "clean")
	runHost(t, "", "ingest", "-m", tiny, "--store", clean).ok(t)
	sameStore(t, dir, clean)
}

// A file that is written while it is read, too.
func TestIngestFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, readFile(t, tiny), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{ctx: t.Context()}
	s, err := a.openSource(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.unchanged(); err != nil {
		t.Error(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.unchanged(); err == nil || !strings.Contains(err.Error(), "has changed while it was read") {
		t.Errorf("have error %v", err)
	}
}
