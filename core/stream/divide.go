package stream

import (
	"fmt"
	"slices"
	"sort"
)

// Group is the MoE layers whose expert records have one layout.
type Group struct {
	Layers      []int // as numbered in the model
	Experts     int   // per layer
	Used        int   // K: experts a token uses per layer
	RecordBytes int64 // bytes of a record in its slot, padding included
}

// BudgetError says that a budget holds less than K slots for each group.
type BudgetError struct {
	Have, Want int64 // bytes; Want is the smallest budget that works
}

// Error implements error.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("stream: expert slots: have %d bytes, want at least %d: raise the GPU budget", e.Have, e.Want)
}

// Divide turns a budget in bytes into banks that together take no more than it, none
// larger than bankLimit bytes (what one binding may cover). A bank takes its slots' bytes.
func Divide(groups []Group, bankLimit, budget int64) ([]Bank, error) {
	return DivideWith(groups, bankLimit, budget, func(bytes int64) int64 { return bytes })
}

// DivideWith is Divide where a bank of so many bytes takes what takes says, no less, and
// not less for more.
//
// The rule: every group gets the same fraction of its experts as slots, but at least
// K slots and at most what it can use; what rounding leaves over goes to the first
// groups that have room. A group whose slots don't fit one bank is split into as few
// as hold them, by runs of layers whose lengths differ by at most one, each with K
// slots or more; slots follow the layers in the same way. Few banks because a layer
// may use any slot of its bank. A layer never spans banks, so a layer whose experts
// exceed bankLimit is never wholly resident, whatever the budget.
//
// A budget below K slots per group is a *BudgetError. It also fails where bankLimit
// is below K records, and for malformed groups.
func DivideWith(groups []Group, bankLimit, budget int64, takes func(bytes int64) int64) ([]Bank, error) {
	if err := checkGroups(groups, bankLimit); err != nil {
		return nil, err
	}
	parts := make([]part, len(groups))
	var least int64
	for i, g := range groups {
		parts[i] = part{
			serves: len(g.Layers) * g.Experts, least: g.Used,
			most: len(g.Layers) * min(g.Experts, g.perBank(bankLimit)),
			cost: func(slots int) (sum int64) {
				perBank := g.perBank(bankLimit)
				if n, held := g.banks(perBank, slots); n == 1 { // of a model's groups most; there may be thousands
					return takes(int64(held) * g.RecordBytes)
				}
				for _, b := range g.split(perBank, slots) {
					sum += takes(int64(b.Slots) * b.RecordBytes)
				}
				return sum
			},
		}
		least += parts[i].cost(g.Used)
	}
	if budget < least {
		return nil, &BudgetError{Have: budget, Want: least}
	}
	var banks []Bank
	for i, slots := range fill(parts, budget) {
		banks = append(banks, groups[i].split(groups[i].perBank(bankLimit), slots)...)
	}
	return banks, nil
}

func checkGroups(groups []Group, bankLimit int64) error {
	seen := layerSet{}
	for i, g := range groups {
		if err := seen.add(g.Layers, g.Experts, g.RecordBytes); err != nil {
			return fmt.Errorf("stream: group %d: %w", i, err)
		}
		if g.Used < 1 || g.Used > g.Experts {
			return fmt.Errorf("stream: group %d: experts used: have %d, want 1 to %d", i, g.Used, g.Experts)
		}
		if g.perBank(bankLimit) < g.Used {
			return fmt.Errorf("stream: group %d: bytes of a bank: have at most %d, want %d, which %d records take: "+
				"this GPU's bindings are too small for the model", i, bankLimit, int64(g.Used)*g.RecordBytes, g.Used)
		}
	}
	return nil
}

// perBank is how many slots one bank may have.
func (g Group) perBank(bankLimit int64) int {
	return int(min(bankLimit/g.RecordBytes, maxExperts))
}

// banks is how many banks of at most perBank slots the group has for the given slots, and how many of these they hold.
func (g Group) banks(perBank, slots int) (n, held int) {
	for try := 1; try <= len(g.Layers) && try*g.Used <= slots && held < slots; try++ {
		if h := min(slots, g.room(try, perBank)); h > held {
			n, held = try, h
		}
	}
	return n, held
}

// split makes the group's banks for the given slots, at most perBank in each.
func (g Group) split(perBank, slots int) []Bank {
	n, held := g.banks(perBank, slots)
	banks, parts := make([]Bank, n), make([]part, n)
	for i := range banks {
		layers := g.Layers[i*len(g.Layers)/n : (i+1)*len(g.Layers)/n]
		banks[i] = Bank{Layers: slices.Clone(layers), Experts: g.Experts, RecordBytes: g.RecordBytes}
		serves := len(layers) * g.Experts
		parts[i] = part{serves: serves, least: g.Used, most: min(serves, perBank), cost: func(slots int) int64 { return int64(slots) }}
	}
	for i, s := range fill(parts, int64(held)) {
		banks[i].Slots = s
	}
	return banks
}

// room is how many slots the group can use in n banks.
func (g Group) room(n, perBank int) int {
	short, long := len(g.Layers)/n, len(g.Layers)%n // layers per bank; banks with one more
	return long*min(perBank, (short+1)*g.Experts) + (n-long)*min(perBank, short*g.Experts)
}

// part is one claim on a budget: slots, and what so many cost.
type part struct {
	serves, least, most int
	cost                func(slots int) int64
}

// slots is the part's share at the fraction num/den of what it serves.
func (p part) slots(num, den int) int {
	return max(p.least, min(p.most, p.serves*num/den))
}

// fill divides a budget that covers every part's least.
func fill(parts []part, budget int64) []int {
	den := 1
	for _, p := range parts {
		den = max(den, p.serves)
	}
	cost := func(num int) (sum int64) {
		for _, p := range parts {
			sum += p.cost(p.slots(num, den))
		}
		return sum
	}
	num := max(0, sort.Search(den+1, func(num int) bool { return cost(num) > budget })-1)
	for num > 0 && cost(num) > budget { // where two banks cost less than one of more slots did
		num--
	}
	left := budget - cost(num)
	slots := make([]int, len(parts))
	for i, p := range parts {
		slots[i] = p.slots(num, den)
	}
	for more := true; more; {
		more = false
		for i, p := range parts {
			if slots[i] == p.most {
				continue
			}
			if extra := p.cost(slots[i]+1) - p.cost(slots[i]); extra <= left {
				slots[i]++
				left -= extra
				more = true
			}
		}
	}
	return slots
}
