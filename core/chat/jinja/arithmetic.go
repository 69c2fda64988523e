package jinja

import (
	"errors"
	"fmt"
	"math"
	"strings"

	engine "github.com/ardanlabs/jinja"
)

func add(r *run, a arguments) (engine.Value, error) {
	x, y := a.list[0], a.list[1]
	switch {
	case x.IsString() && y.IsString():
		if err := r.spend(len(x.AsString()) + len(y.AsString())); err != nil {
			return undefined, err
		}
		return engine.NewString(x.AsString() + y.AsString()), nil
	case x.IsList() && y.IsList():
		items := append(append([]engine.Value{}, x.AsList().Items...), y.AsList().Items...)
		return r.values(items)
	case x.IsString():
		return undefined, fmt.Errorf("can only concatenate str (not %q) to str", typeName(y))
	}
	return arithmetic('+')(r, a)
}

// arithmetic is + - * and // ('/') of numbers.
func arithmetic(op byte) function {
	return func(_ *run, a arguments) (engine.Value, error) {
		x, y := a.list[0], a.list[1]
		if !isNumber(x) || !isNumber(y) {
			if x.IsUndefined() || y.IsUndefined() {
				return undefined, errUndefined
			}
			return undefined, fmt.Errorf("unsupported operand types for %c: %q and %q", op, typeName(x), typeName(y))
		}
		if x.IsFloat() || y.IsFloat() {
			f, g := float(x), float(y)
			switch op {
			case '+':
				f += g
			case '-':
				f -= g
			case '*':
				f *= g
			default:
				if g == 0 {
					return undefined, errors.New("division by zero")
				}
				f = math.Floor(f / g)
			}
			return engine.NewFloat(f), nil
		}
		n, ok := integers(op, integer(x), integer(y))
		if !ok {
			return undefined, fmt.Errorf("%d %c %d: have no such integer of 64 bits", integer(x), op, integer(y))
		}
		return engine.NewInt(n), nil
	}
}

// integers computes without overflow.
func integers(op byte, x, y int64) (n int64, ok bool) {
	switch op {
	case '+':
		n = x + y
		return n, (n > x) == (y > 0)
	case '-':
		n = x - y
		return n, (n < x) == (y > 0)
	case '*':
		if x == 0 || y == 0 {
			return 0, true
		}
		n = x * y
		return n, n/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
	}
	if y == 0 || y == -1 && x == math.MinInt64 {
		return 0, false
	}
	n = x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		n--
	}
	return n, true
}

func multiply(r *run, a arguments) (engine.Value, error) {
	x, y := a.list[0], a.list[1]
	if y.IsString() || y.IsList() {
		x, y = y, x
	}
	if !x.IsString() && !x.IsList() {
		return arithmetic('*')(r, a)
	}
	n, err := index(y)
	if err != nil {
		return undefined, err
	}
	n = max(n, 0)
	if x.IsList() {
		items := x.AsList().Items
		if len(items) == 0 {
			n = 0
		}
		if err := r.spend(valueSize * len(items) * n); err != nil {
			return undefined, err
		}
		var out []engine.Value
		for range n {
			out = append(out, items...)
		}
		return engine.NewList(out), nil
	}
	if err := r.spend(len(x.AsString()) * n); err != nil {
		return undefined, err
	}
	return engine.NewString(strings.Repeat(x.AsString(), n)), nil
}

func divide(_ *run, a arguments) (engine.Value, error) {
	x, y := a.list[0], a.list[1]
	if !isNumber(x) || !isNumber(y) {
		return undefined, fmt.Errorf("unsupported operand types for /: %q and %q", typeName(x), typeName(y))
	}
	if float(y) == 0 {
		return undefined, errors.New("division by zero")
	}
	return engine.NewFloat(float(x) / float(y)), nil
}

func modulo(r *run, a arguments) (engine.Value, error) {
	x, y := a.list[0], a.list[1]
	switch {
	case x.IsString():
		return r.percent(x.AsString(), y)
	case !isNumber(x) || !isNumber(y):
		return undefined, fmt.Errorf("unsupported operand types for %%: %q and %q", typeName(x), typeName(y))
	case float(y) == 0:
		return undefined, errors.New("division by zero")
	case x.IsFloat() || y.IsFloat():
		m := math.Mod(float(x), float(y))
		if m != 0 && (m < 0) != (float(y) < 0) {
			m += float(y)
		}
		return engine.NewFloat(m), nil
	}
	m := integer(x) % integer(y)
	if m != 0 && (m < 0) != (integer(y) < 0) {
		m += integer(y)
	}
	return engine.NewInt(m), nil
}

func power(_ *run, a arguments) (engine.Value, error) {
	x, y := a.list[0], a.list[1]
	if !isNumber(x) || !isNumber(y) {
		return undefined, fmt.Errorf("unsupported operand types for **: %q and %q", typeName(x), typeName(y))
	}
	f := math.Pow(float(x), float(y))
	if x.IsFloat() || y.IsFloat() || integer(y) < 0 {
		return engine.NewFloat(f), nil
	}
	n, ok := int64(1), math.Abs(f) < 1<<62
	for range integer(y) {
		if n == 0 || n == 1 && integer(x) == 1 || !ok {
			break
		}
		if n, ok = integers('*', n, integer(x)); integer(x) == -1 {
			n, ok = 1-2*(integer(y)&1), true
			break
		}
	}
	if !ok {
		return undefined, fmt.Errorf("%d ** %d: have no such integer of 64 bits", integer(x), integer(y))
	}
	return engine.NewInt(n), nil
}

func negate(r *run, a arguments) (engine.Value, error) {
	if v := a.input(); v.IsFloat() {
		return engine.NewFloat(-v.AsFloat()), nil
	}
	return arithmetic('-')(r, arguments{list: []engine.Value{engine.NewInt(0), a.input()}})
}

func positive(r *run, a arguments) (engine.Value, error) {
	if v := a.input(); v.IsFloat() {
		return v, nil
	}
	return arithmetic('+')(r, arguments{list: []engine.Value{engine.NewInt(0), a.input()}})
}
