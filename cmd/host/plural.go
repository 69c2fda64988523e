package main

import "fmt"

// plural is a count with its unit, whose plural has an s: "1 token", "2 tokens". Every count that is printed with a unit is one.
func plural[N int | int64 | uint32 | uint64](n N, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}
