package sdk

import "strings"

// Refusal is the error by which a plugin says that it can't run a file. Each
// reason names the key or tensor, what it is and what it should be.
type Refusal struct {
	Reasons []string
}

func (r *Refusal) Error() string { return strings.Join(r.Reasons, "; ") }
