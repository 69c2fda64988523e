package tokenizer

import "unicode/utf8"

// GPT-2 writes each byte as one printable character, so that a vocabulary is
// text: printable Latin-1 stands for itself, the other 68 bytes, in order, are
// U+0100 to U+0143 (bytes_to_unicode in openai/gpt-2, src/encoder.py).

// printable says whether GPT-2's form leaves a byte as it is.
func printable(b int) bool {
	return '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF
}

// byteRunes gives the character of each byte.
var byteRunes = func() (table [256]rune) {
	next := rune(0x100)
	for b := range table {
		table[b] = rune(b)
		if !printable(b) {
			table[b] = next
			next++
		}
	}
	return table
}()

// runeBytes gives the byte of each such character, and -1 for the others.
var runeBytes = func() (table [0x144]int16) {
	for r := range table {
		table[r] = -1
	}
	for b, r := range byteRunes {
		table[r] = int16(b)
	}
	return table
}()

// appendByteLevel appends text with each byte in GPT-2's form.
func appendByteLevel(dst []byte, text string) []byte {
	for i := range len(text) {
		dst = utf8.AppendRune(dst, byteRunes[text[i]])
	}
	return dst
}

// appendBytes appends the bytes that a piece in GPT-2's form stands for. What
// is not in that form is appended as it is.
func appendBytes(dst []byte, piece string) []byte {
	for i, r := range piece {
		if r < rune(len(runeBytes)) && runeBytes[r] >= 0 {
			dst = append(dst, byte(runeBytes[r]))
			continue
		}
		_, size := utf8.DecodeRuneInString(piece[i:])
		dst = append(dst, piece[i:i+size]...)
	}
	return dst
}
