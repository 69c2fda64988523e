package program

import (
	"math/bits"
	"strconv"
	"strings"
)

// maxExpr is the longest expression, in tokens, that eval reads.
const maxExpr = 64

// eval is the value of a constant expression of unsigned integers: numbers,
// names of const declarations, + - * / % and parentheses. false where it is
// anything else, overflows, or refers to itself.
func (m *wgslModule) eval(expr []wgslToken) (uint64, bool) {
	if len(expr) > maxExpr {
		return 0, false
	}
	e := &evaluator{m: m, c: cursor{toks: expr}}
	v := e.sum()
	return v, !e.bad && e.c.done()
}

type evaluator struct {
	m     *wgslModule
	c     cursor
	depth int
	bad   bool
}

func (e *evaluator) fail() uint64 { e.bad = true; return 0 }

func (e *evaluator) sum() uint64 {
	v := e.product()
	for !e.bad {
		switch {
		case e.c.take("+"):
			sum, carry := bits.Add64(v, e.product(), 0)
			if v = sum; carry != 0 {
				return e.fail()
			}
		case e.c.take("-"):
			diff, borrow := bits.Sub64(v, e.product(), 0)
			if v = diff; borrow != 0 {
				return e.fail()
			}
		default:
			return v
		}
	}
	return 0
}

func (e *evaluator) product() uint64 {
	v := e.atom()
	for !e.bad {
		switch {
		case e.c.take("*"):
			high, low := bits.Mul64(v, e.atom())
			if v = low; high != 0 {
				return e.fail()
			}
		case e.c.take("/"):
			d := e.atom()
			if d == 0 {
				return e.fail()
			}
			v /= d
		case e.c.take("%"):
			d := e.atom()
			if d == 0 {
				return e.fail()
			}
			v %= d
		default:
			return v
		}
	}
	return 0
}

func (e *evaluator) atom() uint64 {
	if e.depth++; e.depth > maxTypeDepth {
		return e.fail()
	}
	defer func() { e.depth-- }()
	switch t := e.c.next(); {
	case t.kind == 'n':
		v, err := strconv.ParseUint(strings.TrimRight(t.text, "ui"), 0, 64)
		if err != nil {
			return e.fail()
		}
		return v
	case t.text == "u32" && e.c.peek().text == "(": // a conversion
		return e.atom()
	case t.kind == 'i':
		return e.name(t.text)
	case t.text == "(":
		v := e.sum()
		if !e.c.take(")") {
			return e.fail()
		}
		return v
	}
	return e.fail()
}

// name is the value of a const declaration, worked out once.
func (e *evaluator) name(name string) uint64 {
	c := e.m.consts[name]
	if c == nil || c.state == 1 || c.state == 3 {
		return e.fail()
	}
	if c.state == 0 {
		if c.state = 3; len(c.expr) > maxExpr {
			return e.fail()
		}
		c.state = 1
		inner := &evaluator{m: e.m, c: cursor{toks: c.expr}, depth: e.depth}
		c.value = inner.sum()
		if c.state = 2; inner.bad || !inner.c.done() {
			c.state = 3
			return e.fail()
		}
	}
	return c.value
}
