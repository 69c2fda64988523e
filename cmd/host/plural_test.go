package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 tokens", 1: "1 token", 2: "2 tokens"} {
		if have := plural(n, "token"); have != want {
			t.Errorf("%d: have %q, want %q", n, have, want)
		}
	}
}

// TestPluralEverywhere: no text of this package has a plural behind a count of its own.
func TestPluralEverywhere(t *testing.T) {
	own := regexp.MustCompile(`%d [a-z]+(s\b|\(s\))`)
	never := regexp.MustCompile(`%d is `)
	constant := map[string]bool{
		"the median of %d runs after the first": true, // two or more
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && own.MatchString(never.ReplaceAllString(l.Value, "")) && !constant[strings.Trim(l.Value, "\"`")] {
				t.Errorf("%s: have %s, want plural to write the count", set.Position(l.Pos()), l.Value)
			}
			return true
		})
	}
}
