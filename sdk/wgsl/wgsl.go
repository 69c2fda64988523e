// Package wgsl finds the tokens of WGSL source, for those who judge it before a compiler does.
package wgsl

import "strings"

// Next is where the next token lies, from i on: an identifier or a number, or one byte of anything else, so it can't fail.
// Spaces, tabs, line ends and comments, which nest, are passed over. At the end of the source from is its length.
func Next(src string, i int) (from, to int) {
	for i < len(src) {
		switch c := src[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case strings.HasPrefix(src[i:], "//"):
			i = lineEnd(src, i)
		case strings.HasPrefix(src[i:], "/*"):
			i = blockEnd(src, i)
		default:
			for to = i; to < len(src) && IsWord(src[to]); {
				to++
			}
			return i, max(to, i+1)
		}
	}
	return len(src), len(src)
}

// IsWord reports whether identifiers and numbers may have the byte.
func IsWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func lineEnd(src string, i int) int {
	if n := strings.IndexByte(src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(src)
}

// blockEnd is the position after the block comment at i; they nest. An open
// comment runs to the end.
func blockEnd(src string, i int) int {
	depth := 0
	for i < len(src) {
		switch {
		case strings.HasPrefix(src[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(src[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(src)
}
