package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/core/engine"
)

// benchBudget is one of --budgets: a share of all experts, or what --gpu-budget takes.
type benchBudget struct {
	text  string
	share float64 // more than 0 for a percentage, at most 1
	budget
}

// UnmarshalText reads 25% or what a budget reads.
func (b *benchBudget) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	number, percent := strings.CutSuffix(s, "%")
	if !percent {
		*b = benchBudget{text: s}
		if err := b.budget.UnmarshalText([]byte(s)); err != nil {
			return fmt.Errorf("have %q, want a percentage of the experts such as 25%%, auto, max, or a size such as 512MB or 4GB", s)
		}
		return nil
	}
	n, err := parseNumber(strings.TrimSpace(number))
	if err != nil || !(n > 0 && n <= 100) {
		return fmt.Errorf("have %q, want more than 0%% and at most 100%% of the experts", s)
	}
	*b = benchBudget{text: s, share: n / 100}
	return nil
}

// benchBudgets is the value of --budgets; where the flag comes more often, of all of them.
type benchBudgets []benchBudget

// UnmarshalText reads budgets with commas between, at least one.
func (l *benchBudgets) UnmarshalText(text []byte) error {
	for part := range strings.SplitSeq(string(text), ",") {
		var b benchBudget
		if err := b.UnmarshalText([]byte(part)); err != nil {
			return err
		}
		*l = append(*l, b)
	}
	return nil
}

// maxBudgets is how many --budgets there may be: each is planned before the first is measured, and takes minutes.
const maxBudgets = 100

// checkBudgets refuses more, and one that comes twice: its rows could not be told apart.
func (c *benchCmd) checkBudgets() error {
	if n := len(c.Budgets); n > maxBudgets {
		return fmt.Errorf("--budgets: have %d, want at most %d", n, maxBudgets)
	}
	for i, b := range c.Budgets {
		if slices.ContainsFunc(c.Budgets[:i], func(x benchBudget) bool { return x.text == b.text }) {
			return fmt.Errorf("--budgets: have %s twice, want it once: --runs measures it more often", b.text)
		}
	}
	return nil
}

// table says whether a row for each budget and state of the page cache is wanted.
func (c *benchCmd) table() bool { return len(c.Budgets) > 0 || c.Cache != cacheAsIs }

// benchPlan is what a budget comes to on this machine.
type benchPlan struct {
	text     string
	budget   budget // for --gpu-budget
	sized    bool   // a size, not a share, auto or max
	bytes    uint64 // of the GPU, in all
	slots    int
	tooSmall *engine.BudgetError // nil where it is not
}

// plans resolves the budgets.
func (c *benchCmd) plans(a *app, s *benchSurvey) (out []benchPlan, err error) {
	budgets := c.Budgets
	if len(budgets) == 0 {
		text := "auto"
		if c.GPUBudget.max {
			text = "max"
		} else if !c.GPUBudget.auto {
			text = strings.ReplaceAll(size(c.GPUBudget.bytes), " ", "")
		}
		budgets = []benchBudget{{text: text, budget: c.GPUBudget}}
	}
	for _, b := range budgets {
		p := benchPlan{text: b.text, budget: b.budget, sized: b.share == 0 && !b.budget.auto && !b.budget.max}
		switch bytes, _ := b.budget.resolve(a.ctx, s.device); {
		case b.share > 0:
			p.budget = budget{bytes: s.budgetFor(b.share)}
		case bytes == 0:
			p.budget = budget{max: true}
		default:
			p.budget = budget{bytes: bytes}
		}
		have, banks, err := s.predict(p.budget.bytes)
		if err != nil && !errors.As(err, &p.tooSmall) {
			return nil, fmt.Errorf("--budgets: %s: %w", b.text, err)
		}
		p.bytes = have.Total()
		p.slots = slotsOf(banks)
		out = append(out, p)
	}
	return out, nil
}

// budgetFor is the budget whose pool holds a share of all experts. What else the model needs depends on the budget: a
// larger one may have a longer chunk, which takes more of it, and never a shorter one.
func (s *benchSurvey) budgetFor(share float64) uint64 {
	pool := uint64(math.Ceil(share * float64(s.whole)))
	bytes := s.fixed + pool
	for range 16 {
		have, _, err := s.predict(bytes)
		more := have.Total() - have.Pool + pool
		if err != nil || more <= bytes {
			break
		}
		bytes = more
	}
	return bytes
}

// why says what budget works.
func (p benchPlan) why(s *benchSurvey) string {
	least := p.tooSmall
	share := 100 * float64(least.Pool) / float64(s.whole)
	have := "" // where a size was given: one without its unit is bytes, which its text doesn't say
	if p.sized {
		have = fmt.Sprintf("have %s, ", size(p.budget.bytes))
	}
	return fmt.Sprintf("too small: %swant at least %.1f%%, in all %s (--gpu-budget %d)", have, math.Ceil(10*share)/10, size(least.Want()), least.Want())
}

// cpuProfile is where the CPU time goes. It keeps the first error, which the profiler loses.
type cpuProfile struct {
	file *outputFile
	err  error
}

func (p *cpuProfile) Write(data []byte) (int, error) {
	n, err := p.file.Write(data)
	if p.err == nil {
		p.err = err
	}
	return n, err
}

// cpuProfile makes the file of --cpuprofile; nil where there is none. of tells it from those of other rows.
func (c *benchCmd) cpuProfile(of string) (*cpuProfile, error) {
	if c.CPUProfile == "" {
		return nil, nil
	}
	path := c.CPUProfile
	if of != "" {
		ext := filepath.Ext(path)
		path = strings.TrimSuffix(path, ext) + "-" + of + ext
	}
	f, err := createOutput("--cpuprofile", path)
	if err != nil {
		return nil, err
	}
	return &cpuProfile{file: f}, nil
}

// close ends the file, if there is one.
func (p *cpuProfile) close() error {
	if p == nil {
		return nil
	}
	if err := errors.Join(p.err, p.file.Close()); err != nil {
		return fmt.Errorf("--cpuprofile: %w", err)
	}
	return nil
}
