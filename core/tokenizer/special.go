package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// matcher finds special tokens in text. llama.cpp takes them one after the
// other, the longest first, and cuts each out of what the earlier ones left;
// with thousands of them and a long text that takes long. So an Aho-Corasick
// automaton first finds, in one pass, which of them can occur at all: those
// whose first bytes do. It knows no more of them, for it takes memory many
// times the text that it knows.
type matcher struct {
	specials []special // in the order of the search
	nodes    []node    // 0 is the root
	root     [256]int32
}

type special struct {
	id     int32
	text   string
	hidden bool  // only with ParseSpecial
	same   int32 // the index of another one with the same first bytes, or none
}

// known is how many first bytes of a special token the automaton knows. Real
// ones are hardly longer; longer ones only cost a look at the text more often.
const known = 32

// node is a state: a start of some special token's text. Children are a list.
type node struct {
	child, sibling int32 // 0: none
	parent         int32
	fail           int32 // the longest proper suffix that is a node, too
	hit            int32 // the longest suffix that has specials; 0: none
	special        int32 // the index of one whose first bytes these are, or none
	depth          int32
	b              byte // the last byte of the text
}

// newMatcher takes up the control, unknown and user-defined tokens. Of texts
// of equal length the lower id goes first.
func newMatcher(tokens []string, types []Type) matcher {
	m := matcher{nodes: []node{{special: none}}}
	for id, text := range tokens {
		if t := types[id]; text != "" && (t.hidden() || t == UserDefined) {
			m.specials = append(m.specials, special{int32(id), text, t.hidden(), none})
		}
	}
	slices.SortStableFunc(m.specials, func(a, b special) int { return cmp.Compare(len(b.text), len(a.text)) })
	for i, s := range m.specials {
		n := m.insert(s.text[:min(len(s.text), known)])
		m.specials[i].same, m.nodes[n].special = m.nodes[n].special, int32(i)
	}
	m.link()
	return m
}

// insert gives the node of a text, which it makes if need be.
func (m *matcher) insert(text string) int32 {
	n := int32(0)
	for i := range len(text) {
		c := m.childOf(n, text[i])
		if c == 0 {
			c = int32(len(m.nodes))
			m.nodes = append(m.nodes, node{
				sibling: m.nodes[n].child, parent: n, special: none, depth: m.nodes[n].depth + 1, b: text[i],
			})
			m.nodes[n].child = c
			if n == 0 {
				m.root[text[i]] = c
			}
		}
		n = c
	}
	return n
}

func (m *matcher) childOf(n int32, b byte) int32 {
	if n == 0 {
		return m.root[b]
	}
	c := m.nodes[n].child
	for c != 0 && m.nodes[c].b != b {
		c = m.nodes[c].sibling
	}
	return c
}

// link sets fail and hit, which depend on nodes of lesser depth.
func (m *matcher) link() {
	order := make([]int32, len(m.nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(m.nodes[a].depth, m.nodes[b].depth) })
	for _, i := range order[1:] {
		n := &m.nodes[i]
		if n.depth > 1 {
			n.fail = m.step(m.nodes[n.parent].fail, n.b)
		}
		n.hit = m.nodes[n.fail].hit
		if n.special != none {
			n.hit = i
		}
	}
}

// step is the state after one more byte.
func (m *matcher) step(n int32, b byte) int32 {
	for {
		if c := m.childOf(n, b); c != 0 || n == 0 {
			return c
		}
		n = m.nodes[n].fail
	}
}

// occurring gives the indices of the specials whose first bytes are somewhere
// in the text, in the order of the search.
func (m *matcher) occurring(u *until, text string) []int32 {
	if len(m.specials) == 0 {
		return nil
	}
	var found []int32
	seen := make(map[int32]bool)
	state := int32(0)
	for i := 0; i < len(text) && !u.over(); i++ {
		state = m.step(state, text[i])
		// Behind a hit that was seen before are only others that were.
		for n := m.nodes[state].hit; n != 0 && !seen[n]; n = m.nodes[m.nodes[n].fail].hit {
			seen[n] = true
			for s := m.nodes[n].special; s != none; s = m.specials[s].same {
				found = append(found, s)
			}
		}
	}
	slices.Sort(found)
	return found
}

// fragment is a piece of text, or a token that was found in it.
type fragment struct {
	text string
	at   int   // where it begins in the whole text
	id   int32 // or none
}

// partition cuts a text at its special tokens: at user-defined ones always, at
// hidden ones if asked to.
func (m *matcher) partition(u *until, text string, hidden bool) []fragment {
	return m.cutAt(u, text, func(s *special) func(from, to int) bool {
		if s.hidden && !hidden {
			return nil
		}
		return anywhere
	})
}

func anywhere(from, to int) bool { return true }

// cutAt cuts a text at its special tokens, where allowed gives no nil and the
// function that it gives holds, until u is over.
func (m *matcher) cutAt(u *until, text string, allowed func(*special) func(from, to int) bool) []fragment {
	parts := []fragment{{text, 0, none}}
	for _, i := range m.occurring(u, text) {
		s := &m.specials[i]
		at := allowed(s)
		if at == nil {
			continue
		}
		var next []fragment
		for _, p := range parts {
			if u.over() {
				return nil
			}
			if p.id != none {
				next = append(next, p)
				continue
			}
			next = s.cut(u, next, p, at)
		}
		parts = next
	}
	return parts
}

// cut appends the fragments of a text in which this token is looked for, from
// left to right.
func (s *special) cut(u *until, dst []fragment, p fragment, allowed func(from, to int) bool) []fragment {
	for seen := 0; p.text != "" && !u.over(); {
		i := strings.Index(p.text[seen:], s.text)
		if i < 0 {
			return append(dst, p)
		}
		i += seen
		if !allowed(p.at+i, p.at+i+len(s.text)) {
			seen = i + 1
			continue
		}
		if i > 0 {
			dst = append(dst, fragment{p.text[:i], p.at, none})
		}
		dst = append(dst, fragment{"", p.at + i, s.id})
		n := i + len(s.text)
		p.text, p.at, seen = p.text[n:], p.at+n, 0
	}
	return dst
}
