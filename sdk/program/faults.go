package program

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// maxFaults is the most errors that one validation reports.
const maxFaults = 20

// faults collects errors up to maxFaults; what comes after is only counted, so
// that a hostile message can't make the host write megabytes of text.
type faults struct {
	errs    []error
	dropped int
}

// addf records a fault. The format starts with what is at fault.
func (f *faults) addf(format string, args ...any) {
	if len(f.errs) >= maxFaults {
		f.dropped++
		return
	}
	f.errs = append(f.errs, fmt.Errorf("program: "+format, args...))
}

func (f *faults) any() bool { return len(f.errs) > 0 }

// err is everything found, nil where that is nothing.
func (f *faults) err() error {
	if f.dropped > 0 {
		return errors.Join(append(f.errs[:len(f.errs):len(f.errs)], fmt.Errorf("program: and %d more", f.dropped))...)
	}
	return errors.Join(f.errs...)
}

// count refuses lists that are longer than any model needs.
func (f *faults) count(what string, have, most int) bool {
	if have > most {
		f.addf("%s: have %d, want at most %d", what, have, most)
	}
	return have <= most
}

// maxName is the longest name of anything, in bytes.
const maxName = 256

// name checks a name that must be there, short, and unlike the names in seen,
// to which it is added.
func (f *faults) name(what string, name string, seen map[string]bool) {
	switch {
	case name == "":
		f.addf("%s: have no name", what)
	case len(name) > maxName:
		f.addf("%s: have a name of %d bytes, want at most %d", what, len(name), maxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		f.addf("%s: have the name %q, want no control characters", what, clip(name))
	case seen[name]:
		f.addf("%s: have the name %s twice", what, clip(name))
	}
	seen[name] = true
}

// clip makes text from outside fit for a message: short, and without control
// characters, which could dress up a terminal.
func clip(s string) string {
	const most = 96
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return visible(s)
}

// visible replaces control characters.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
