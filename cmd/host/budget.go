package main

import (
	"fmt"
)

// budget is the value of --gpu-budget.
type budget struct {
	bytes uint64 // where neither auto nor max
	auto  bool
	max   bool
}

// maxBudget keeps sums of sizes far from overflow; no machine has that much.
const maxBudget = 1 << 60

// UnmarshalText reads auto, max or a size such as 512MB, 4GB, 1.5GiB or a number of bytes.
func (b *budget) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "auto":
		*b = budget{auto: true}
	case "max":
		*b = budget{max: true}
	default:
		n, err := parseSize(s)
		if err != nil || n == 0 || n > maxBudget {
			return fmt.Errorf("have %q, want auto, max, or a size such as 512MB, 4GB or 1.5GiB", s)
		}
		*b = budget{bytes: n}
	}
	return nil
}
