package main

import (
	"fmt"
	"math"
)

// percentText is a share in percent, 100 only where nothing lacks. Whatever shows a share shows it so.
func percentText(share float64) string {
	return fmt.Sprintf("%.1f%%", math.Floor(1000*share+1e-6)/10)
}

// shareText is percentText of a part; a dash where there is nothing to have a part of.
func shareText[N int | int64](part, of N) string {
	if of == 0 {
		return "-"
	}
	return percentText(float64(part) / float64(of))
}

// doneText is how much of something is done, in whole percent.
func doneText(done, total uint64) string {
	return fmt.Sprintf("%d%%", int(math.Floor(100*float64(done)/float64(max(total, 1)))))
}
