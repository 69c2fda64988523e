package rpc

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/sluicehost/sluice/sdk/program"
)

// Refusal is the error by which a plugin says that it can't run a file. Each
// reason names the key or tensor, what it is and what it should be. It crosses
// the process as data, so it reaches the user as it was written.
type Refusal struct {
	Reasons []string
}

func (r *Refusal) Error() string { return strings.Join(r.Reasons, "; ") }

const (
	maxReasons = 64   // shown of one refusal
	maxText    = 2048 // bytes shown of one reason or message
)

func received(m *program.Refusal) *Refusal {
	r := &Refusal{}
	for i, reason := range m.GetReasons() {
		if i == maxReasons {
			r.Reasons = append(r.Reasons, fmt.Sprintf("and %d more", len(m.GetReasons())-i))
			break
		}
		r.Reasons = append(r.Reasons, OneLine(reason, maxText))
	}
	if len(r.Reasons) == 0 {
		r.Reasons = []string{"no reason given"}
	}
	return r
}

// OneLine makes text that a plugin wrote fit for a terminal: at most max
// bytes, with blanks for line breaks and no control characters.
func OneLine(s string, max int) string {
	cut := ""
	if len(s) > max {
		s, cut = s[:max], "…"
	}
	clean := func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}
	return strings.TrimSpace(strings.Map(clean, strings.ToValidUTF8(s, "\uFFFD"))) + cut
}
