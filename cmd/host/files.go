package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/core/store"
)

// readLimited reads a file of at most so many bytes. It reads no more of one that is longer, for
// the path may be that of a device.
func readLimited(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: have more than %s, want at most as many", path, plural(most, "byte"))
	}
	return data, err
}

// outputFile is a file that a flag names. What was there before is gone once something is written, so
// that a command that fails to start costs nothing.
type outputFile struct {
	file     *os.File
	replaces bool // something is there yet
	fresh    bool // made by us, and nothing written yet
}

// createOutput makes the file that a flag names, or opens the one that is there, unless that is
// a model or of a store: one slip of the hand must not cost a day's download.
func createOutput(flag, path string) (*outputFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	fresh := err == nil
	if !fresh {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	replaces, err := mayReplace(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, errors.Join(err, f.Close()))
	}
	return &outputFile{f, replaces, fresh}, nil
}

// mayReplace says whether a file holds something, and refuses one that is worth more than an output.
func mayReplace(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	var begin [4]byte
	if n, _ := f.ReadAt(begin[:], 0); string(begin[:n]) == "GGUF" {
		return false, fmt.Errorf("%s: have a GGUF file there, want a path where nothing is lost", f.Name())
	}
	if dir := filepath.Dir(f.Name()); info.Size() > 0 && store.IsStore(dir) {
		return false, fmt.Errorf("%s: have a file of the store %s there, want a path where nothing is lost", f.Name(), dir)
	}
	return info.Size() > 0, nil
}

// Write implements io.Writer.
func (o *outputFile) Write(data []byte) (int, error) {
	if o.replaces {
		if err := o.file.Truncate(0); err != nil {
			return 0, err
		}
		o.replaces = false
	}
	o.fresh = false
	return o.file.Write(data)
}

// Close implements io.Closer. Where nothing was written all is as it was.
func (o *outputFile) Close() error {
	if !o.fresh {
		return o.file.Close()
	}
	ours, err := o.file.Stat()
	if err = errors.Join(err, o.file.Close()); err != nil {
		return err
	}
	if there, err := os.Lstat(o.file.Name()); err == nil && os.SameFile(ours, there) && there.Size() == 0 {
		return os.Remove(o.file.Name())
	}
	return nil
}

// writeOutput is createOutput with what is to be in the file.
func writeOutput(flag, path string, data []byte) error {
	f, err := createOutput(flag, path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// output is a flag and the file that it wants written; none where the path is empty.
type output struct{ flag, path string }

// apart refuses two outputs to one file, where each would overwrite the other. Devices take any number.
func apart(outputs ...output) error {
	for i, x := range outputs {
		for _, y := range outputs[:i] {
			if x.path == "" || y.path == "" || filepath.Clean(x.path) != filepath.Clean(y.path) && !sameFile(x.path, y.path) {
				continue
			}
			if info, err := os.Stat(x.path); err != nil || info.Mode().IsRegular() {
				return fmt.Errorf("%s: have %s, which is that of %s, want another path", x.flag, x.path, y.flag)
			}
		}
	}
	return nil
}

// sameFile says whether two paths lead to one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
