package program

import (
	"fmt"
	"strconv"
	"strings"
)

// maxOwn bounds the memory of an invocation's own, in bytes of all types that functions, private variables and constants name.
// WGSL promises 8,192 for the variables of a function; drivers take minutes and gigabytes to compile what is far above.
const maxOwn = 32 << 10

// own is maxOwn's rule.
func (m *wgslModule) own() error {
	var total uint64
	for _, toks := range m.bodies {
		for c := (&cursor{toks: toks}); !c.done(); {
			t := c.next()
			next := c.peek().text
			switch {
			case t.kind != 'i':
				continue
			case t.text == "ptr" && next == "<": // of something that is counted where it lies
				c.until(">", true)
				continue
			case t.text == "array" && next == "<":
				start := c.at - 1
				c.take("<")
				c.until(">", true)
				c.take(">")
				total += m.footprint(m.resolve(parseType(toks[start:min(c.at, len(toks))])), 0)
			case m.structs[t.text] != nil, m.aliases[t.text].name != "":
				total += m.footprint(m.resolve(wgslType{name: t.text}), 0)
			}
			if total > maxOwn {
				return fmt.Errorf("wgsl: functions, private variables and constants name types of over %d bytes in all, want at most that", maxOwn)
			}
		}
	}
	return nil
}

// footprint is about how many bytes a resolved type takes, at most maxLayout. What this scanner does not know counts as a word.
func (m *wgslModule) footprint(t wgslType, depth int) uint64 {
	const word = 4
	if depth > maxTypeDepth {
		return word
	}
	switch {
	case t.name == "array" && len(t.args) == 2:
		n, err := strconv.ParseUint(t.args[1].name, 10, 32)
		if err != nil {
			return word
		}
		return min(n, maxLayout/word) * min(m.footprint(t.args[0], depth+1), maxLayout/max(n, 1))
	case t.name == "array" && len(t.args) == 1: // of a buffer
		return 0
	case m.structs[t.name] != nil:
		return m.structBytes(t.name, depth)
	case strings.HasPrefix(t.name, "vec"):
		return 4 * word
	case strings.HasPrefix(t.name, "mat"):
		return 16 * word
	}
	return word
}

// structBytes is the footprint of a struct. Each is added up once, however often others name it.
func (m *wgslModule) structBytes(name string, depth int) uint64 {
	if n, ok := m.sizes[name]; ok {
		return n
	}
	m.sizes[name] = 0 // of one that is in itself, which no compiler takes
	var total uint64
	for _, f := range m.structs[name] {
		total = min(total+m.footprint(m.resolve(f.typ), depth+1), maxLayout)
	}
	m.sizes[name] = total
	return total
}
