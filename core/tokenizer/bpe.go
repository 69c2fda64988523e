package tokenizer

import (
	"fmt"
	"math"
	"strings"
)

// merges are the pairs of tokens that may become one, by rank.
type merges struct {
	ranks  map[uint64]int32 // of the pair (left<<32 | right)
	merged []int32          // by rank: the token that the pair becomes
}

// noRank is the rank of two tokens that never merge.
const noRank int32 = math.MaxInt32

func (m *merges) rank(left, right int32) int32 {
	if left < 0 || right < 0 {
		return noRank
	}
	if r, ok := m.ranks[uint64(left)<<32|uint64(right)]; ok {
		return r
	}
	return noRank
}

// readMerges reads "left right" pairs. Both and what they become must be
// tokens: then merging works on ids and never looks at text again. Of a pair
// that is there twice the first counts.
func readMerges(md Metadata, ids map[string]int32) (merges, error) {
	pairs, err := readStrings(md, keyMerges)
	if err != nil {
		return merges{}, err
	}
	if int64(len(pairs)) >= int64(noRank) {
		return merges{}, fmt.Errorf("tokenizer: %s: have %d entries, want fewer than %d: convert the model again", keyMerges, len(pairs), noRank)
	}
	m := merges{make(map[uint64]int32, len(pairs)), make([]int32, len(pairs))}
	var joined []byte
	for rank, pair := range pairs {
		left, right, ok := cutPair(pair)
		if !ok {
			return merges{}, badMerge(rank, pair, "two tokens and a space between them")
		}
		joined = append(append(joined[:0], left...), right...)
		l, okLeft := ids[left]
		r, okRight := ids[right]
		both, okBoth := ids[string(joined)]
		if !okLeft || !okRight || !okBoth {
			return merges{}, badMerge(rank, pair, "both parts and what they become in "+keyTokens)
		}
		m.merged[rank] = both
		key := uint64(l)<<32 | uint64(r)
		if _, dup := m.ranks[key]; !dup {
			m.ranks[key] = int32(rank)
		}
	}
	return m, nil
}

// cutPair cuts at the first space that is not the first byte, as llama.cpp does.
func cutPair(pair string) (left, right string, ok bool) {
	if pair == "" {
		return "", "", false
	}
	i := strings.IndexByte(pair[1:], ' ') + 1
	if i == 0 || i+1 == len(pair) {
		return "", "", false
	}
	return pair[:i], pair[i+1:], true
}

func badMerge(rank int, pair, want string) error {
	return fmt.Errorf("tokenizer: %s: entry %d: have %.99q, want %s: convert the model again", keyMerges, rank, pair, want)
}

// symbol is a piece of a pre-token while it is being merged: a list.
type symbol struct {
	id         int32 // a token, or ^c for a character or byte c that is none
	rank       int32 // of this symbol and the next, or noRank
	prev, next int32 // indices, or none
}

// gone marks a symbol that its left neighbour has taken in.
const gone int32 = math.MinInt32

// merger merges pre-tokens; its buffers serve one after the other.
type merger struct {
	*merges
	until
	allowed func(id int32) bool // nil: all
	symbols []symbol
	queue   heap
}

// push appends a symbol to the list.
func (m *merger) push(id int32) {
	i := int32(len(m.symbols))
	m.symbols = append(m.symbols, symbol{id: id, prev: i - 1, next: i + 1})
}

// merge joins the pair of lowest rank, leftmost first, until none is left.
// Every merge takes one symbol away and adds two pairs at most, so the queue
// sees fewer than 3n entries. An entry is out of date unless its symbol still
// has the rank that it says: a pair and its rank stand for each other.
func (m *merger) merge() {
	s := m.symbols
	if len(s) == 0 {
		return
	}
	s[len(s)-1].next = none
	m.queue = m.queue[:0]
	for i := 0; i < len(s) && !m.over(); i++ {
		m.rankAt(int32(i))
	}
	for len(m.queue) > 0 && !m.over() {
		rank, i := m.queue.pop()
		left := &s[i]
		if left.rank != rank || left.id == gone {
			continue
		}
		right := &s[left.next]
		left.id, left.next = m.merged[rank], right.next
		right.id = gone
		if left.next != none {
			s[left.next].prev = i
		}
		m.rankAt(i)
		if left.prev != none {
			m.rankAt(left.prev)
		}
	}
}

// rankAt finds the rank of a symbol and the next one and queues the pair.
func (m *merger) rankAt(i int32) {
	s := &m.symbols[i]
	s.rank = noRank
	if s.next == none {
		return
	}
	rank := m.rank(s.id, m.symbols[s.next].id)
	if rank == noRank || m.allowed != nil && !m.allowed(m.merged[rank]) {
		return
	}
	s.rank = rank
	m.queue.push(rank, i)
}

// heap is a binary heap of rank<<32 | index, the lowest first: of equal ranks
// the leftmost.
type heap []uint64

func (h *heap) push(rank, index int32) {
	q := append(*h, uint64(rank)<<32|uint64(index))
	i := len(q) - 1
	for i > 0 && q[i] < q[(i-1)/2] {
		q[i], q[(i-1)/2] = q[(i-1)/2], q[i]
		i = (i - 1) / 2
	}
	*h = q
}

func (h *heap) pop() (rank, index int32) {
	q := *h
	top := q[0]
	last := len(q) - 1
	q[0], q = q[last], q[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if q[c] < q[least] {
				least = c
			}
		}
		if least == i {
			break
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
	*h = q
	return int32(top >> 32), int32(uint32(top))
}
