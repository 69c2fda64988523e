package stream

// Policy chooses what a bank evicts. It keeps a list of the keys that may be
// evicted: resident, not pinned. Keys are known by id, a number of (layer, expert)
// in the bank from 0 to keys-1, never by slot, so that what a policy remembers of a
// key outlives its evictions. The pool calls it under its lock: methods must be
// quick, O(log keys) or better, must not call the pool, and should not allocate.
type Policy interface {
	// Touch says that id was asked for once, whether or not it is resident or listed.
	Touch(id int)
	// Push lists an id that is not listed: it was used until now, or just loaded.
	Push(id int)
	// Remove takes a listed id out, because it is used again.
	Remove(id int)
	// Evict takes out and returns the id to evict. At least one is listed.
	Evict() int
	// Tick says that a step of the model with so many tokens begins: one that is made, or a chunk of a prompt, which asks
	// for nearly every expert of every layer in turn.
	Tick(tokens int)
}

// lru is a ring through next and prev; the index keys stands for the list itself:
// next of it is the newest, prev of it the oldest. Ids not listed have next -1.
type lru struct {
	next, prev []int32
}

// NewLRU returns the policy that evicts the least recently used of keys keys. A key
// is in use until its last pin is released. All methods are O(1).
func NewLRU(keys int) Policy {
	l := &lru{next: make([]int32, keys+1), prev: make([]int32, keys+1)}
	for i := range keys {
		l.next[i] = -1
	}
	l.next[keys], l.prev[keys] = int32(keys), int32(keys)
	return l
}

func (l *lru) Touch(id int) {
	if l.next[id] >= 0 {
		l.Remove(id)
		l.Push(id)
	}
}

func (l *lru) Tick(int) {}

func (l *lru) Push(id int) {
	root := int32(len(l.next) - 1)
	newest := l.next[root]
	l.next[id], l.prev[id] = newest, root
	l.next[root], l.prev[newest] = int32(id), int32(id)
}

func (l *lru) Remove(id int) {
	next, prev := l.next[id], l.prev[id]
	l.next[prev], l.prev[next] = next, prev
	l.next[id] = -1
}

func (l *lru) Evict() int {
	id := int(l.prev[len(l.prev)-1])
	l.Remove(id)
	return id
}
