package gguf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The keys by which gguf-split marks the parts of a model. split.no counts
// from 0, the number in the file's name from 1.
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// osFile is a file that Close owns.
type osFile struct {
	*os.File
	modified time.Time // when it was opened
}

// Open opens a GGUF model at path. Where the file is a part of a split model
// (NAME-00002-of-00003.gguf with split.count 3) it opens all parts, which lie in
// the same folder, whichever one was named. Errors name the file and the key or
// tensor at fault, or all parts that are missing.
func Open(path string) (*File, error) {
	f, err := openOne(path)
	if err != nil {
		return nil, err
	}
	count, _, err := f.Metadata.count(keySplitCount)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	name, err := parseSplitName(path)
	if err == nil {
		err = name.agree(count)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	if count < 2 { // gguf-split's merge leaves a count of 0 behind
		return f, nil
	}
	return openSplit(name, f)
}

// openOne opens one file by itself.
func openOne(path string) (*File, error) {
	// Before opening: opening a pipe would wait for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("gguf: %s: have a %s, want a GGUF file: name the .gguf file itself", path, kind(info.Mode()))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	if info, err = file.Stat(); err != nil { // of what was opened
		file.Close()
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := Read(&osFile{file, info.ModTime()}, info.Size(), path)
	if err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

func kind(m os.FileMode) string {
	if m.IsDir() {
		return "folder"
	}
	return "special file"
}

// splitName is a path of the form NAME-00002-of-00003.gguf; the zero value is
// any other path.
type splitName struct {
	prefix    string // up to the first number, with its dash
	no, count uint64 // 2 and 3
}

var splitPattern = regexp.MustCompile(`^(.*-)(\d{5})-of-(\d{5})\.gguf$`)

func parseSplitName(path string) (splitName, error) {
	dir, base := filepath.Split(path)
	m := splitPattern.FindStringSubmatch(base)
	if m == nil {
		return splitName{}, nil
	}
	s := splitName{prefix: dir + m[1]}
	s.no, _ = strconv.ParseUint(m[2], 10, 64) // five digits
	s.count, _ = strconv.ParseUint(m[3], 10, 64)
	if s.no < 1 || s.no > s.count {
		return splitName{}, fmt.Errorf("have part %d of %d in the file's name, want a number from 1 to %d: give the file its own name back", s.no, s.count, s.count)
	}
	return s, nil
}

// path is the path of part no, counted from 1.
func (s splitName) path(no uint64) string {
	return fmt.Sprintf("%s%05d-of-%05d.gguf", s.prefix, no, s.count)
}

// agree checks the name against the file's split.count.
func (s splitName) agree(count uint64) error {
	switch {
	case count < 2 && s.count < 2, count == s.count:
		return nil
	case s.count == 0:
		return fmt.Errorf("key %s: have %d in a file whose name is not of the form NAME-00001-of-%05d.gguf, by which its parts are found: give the parts their own names back",
			keySplitCount, count, count)
	case count < 2:
		return fmt.Errorf("key %s: have none above 1, want %d as in the file's name: if this is a whole model, rename it", keySplitCount, s.count)
	}
	return fmt.Errorf("key %s: have %d, want %d as in the file's name: the part belongs to another model", keySplitCount, count, s.count)
}

// openSplit opens the parts beside f, which is one of them, and joins all. It
// owns f.
func openSplit(name splitName, f *File) (_ *File, err error) {
	parts := make([]*File, name.count)
	parts[name.no-1] = f
	defer func() {
		if err == nil {
			return
		}
		for _, p := range parts {
			if p != nil {
				p.Close()
			}
		}
	}()
	if err := name.findAll(); err != nil {
		return nil, err
	}
	for i := range parts {
		if parts[i] != nil {
			continue
		}
		if parts[i], err = openOne(name.path(uint64(i) + 1)); err != nil {
			return nil, err
		}
	}
	return join(name, parts)
}

// findAll fails where parts are missing, and names them.
func (s splitName) findAll() error {
	const most = 8
	var missing []string
	n := 0
	for no := uint64(1); no <= s.count; no++ {
		if _, err := os.Stat(s.path(no)); err != nil {
			if n++; n <= most {
				missing = append(missing, filepath.Base(s.path(no)))
			}
		}
	}
	if n == 0 {
		return nil
	}
	if n > most {
		missing = append(missing, fmt.Sprintf("and %d more", n-most))
	}
	return fmt.Errorf("gguf: %s: have %d of %d parts, want all in one folder, missing: %s: download them too",
		s.path(s.no), s.count-uint64(n), s.count, strings.Join(missing, ", "))
}

// SplitNames are the names of all parts of a split model, in order, of which
// name (or a path) is one; for any other name it is that name alone. It fails
// where the name's own numbers contradict each other.
func SplitNames(name string) ([]string, error) {
	s, err := parseSplitName(name)
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", name, err)
	}
	if s.count == 0 {
		return []string{name}, nil
	}
	names := make([]string, s.count)
	for i := range names {
		names[i] = s.path(uint64(i) + 1)
	}
	return names, nil
}

// Join makes one File of the parts of a split model, in order, each as Read gave
// it; it is Open for parts that are not files. One part must be a whole model.
// The parts must not be used by themselves afterwards.
func Join(parts []*File) (*File, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("gguf: have no parts, want at least one")
	}
	if len(parts) > 1 {
		return join(splitName{count: uint64(len(parts))}, parts)
	}
	f := parts[0]
	count, _, err := f.Metadata.count(keySplitCount)
	if err == nil && count > 1 {
		err = fmt.Errorf("key %s: have one part, want all %d", keySplitCount, count)
	}
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Parts[0].Name, err)
	}
	return f, nil
}

// join makes one File of all parts, in order, after checking that they belong
// together.
func join(name splitName, parts []*File) (*File, error) {
	whole := &File{Version: parts[0].Version, Metadata: parts[0].Metadata, byName: make(map[string]int)}
	for i, f := range parts {
		p := f.Parts[0]
		if err := checkSplitKeys(f.Metadata, name, uint64(i)); err != nil {
			return nil, fmt.Errorf("gguf: %s: %w", p.Name, err)
		}
		if err := whole.add(p, f.Tensors); err != nil {
			return nil, err
		}
	}
	if err := checkSplitTensors(parts, uint64(len(whole.Tensors))); err != nil {
		return nil, err
	}
	return whole, nil
}

// checkSplitKeys compares a part's split keys with its place in the file names.
func checkSplitKeys(m *Metadata, name splitName, no uint64) error {
	count, _, err := m.count(keySplitCount)
	if err != nil {
		return err
	}
	if err := name.agree(count); err != nil {
		return err
	}
	have, present, err := m.count(keySplitNo)
	if err != nil {
		return err
	}
	if !present {
		return fmt.Errorf("key %s: have none, want %d: split the model again", keySplitNo, no)
	}
	if have != no {
		return fmt.Errorf("key %s: have %d, want %d for part %d of %d: give the parts their own names back", keySplitNo, have, no, no+1, name.count)
	}
	return nil
}

// checkSplitTensors compares each part's split.tensors.count with the sum. Only
// the first part must have it, as in llama.cpp.
func checkSplitTensors(parts []*File, total uint64) error {
	for i, f := range parts {
		have, present, err := f.Metadata.count(keySplitTensors)
		switch {
		case err != nil:
		case !present && i == 0:
			err = fmt.Errorf("key %s: have none, want %d: split the model again", keySplitTensors, total)
		case present && have != total:
			err = fmt.Errorf("key %s: have %d, want %d, the tensors of all parts: the parts are not of one model", keySplitTensors, have, total)
		}
		if err != nil {
			return fmt.Errorf("gguf: %s: %w", f.Parts[0].Name, err)
		}
	}
	return nil
}

// Reopen opens the part's file once more, to read, with flags of the system's beside
// O_RDONLY. It fails where Open did not open the part, or where another file has its
// name by now. The file is the caller's.
func (p *Part) Reopen(flag int) (*os.File, error) {
	own, ok := p.src.(*osFile)
	if !ok {
		return nil, fmt.Errorf("gguf: %s: not a file, want one to open again", p.Name)
	}
	f, err := os.OpenFile(p.Name, os.O_RDONLY|flag, 0)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	old, err := own.Stat()
	info, err2 := f.Stat()
	if err = errors.Join(err, err2); err == nil && !os.SameFile(old, info) {
		err = errors.New("another file has taken its place: start again")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("gguf: %s: %w", p.Name, err)
	}
	return f, nil
}

// Changed fails, naming the file, where a part has been written to since Open: what was read of it may be of two minds.
func (f *File) Changed() error {
	for i := range f.Parts {
		p := &f.Parts[i]
		own, ok := p.src.(*osFile)
		if !ok {
			continue
		}
		info, err := own.Stat()
		if err != nil {
			return fmt.Errorf("gguf: %w", err)
		}
		if info.Size() != p.Size || !info.ModTime().Equal(own.modified) {
			return fmt.Errorf("gguf: %s: have %d bytes, written %s; when it was opened it had %d, written %s: it changed while it was read, so what was made of it may be wrong",
				p.Name, info.Size(), info.ModTime().Format(time.RFC3339Nano), p.Size, own.modified.Format(time.RFC3339Nano))
		}
	}
	return nil
}
