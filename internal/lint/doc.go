// Package lint holds the house rules as tests: which package may import which,
// that no host code knows an architecture by name, and how large the repository
// may be. It has no other code. Start at rules in imports_test.go.
package lint
