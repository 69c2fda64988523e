package ggml

import "encoding/binary"

// Packers move whole 8-byte words. The reorderings below are bit permutations
// of such words by delta swaps (Hacker's Delight, 7-1 and 7-3).

const (
	low4 = 0x0f0f0f0f0f0f0f0f // the low nibble of every byte
	low2 = 0x0303030303030303 // the low bit pair of every byte

	low2of4 = 0x3333333333333333 // the low bit pair of every nibble
)

func load64(b []byte) uint64     { return binary.LittleEndian.Uint64(b) }
func load32(b []byte) uint32     { return binary.LittleEndian.Uint32(b) }
func store64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
func store32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }

// copy16 and copy32 copy a fixed number of bytes, which the compiler turns
// into a few moves.
func copy16(dst, src []byte) { *(*[16]byte)(dst) = *(*[16]byte)(src) }
func copy32(dst, src []byte) { *(*[32]byte)(dst) = *(*[32]byte)(src) }

// swap exchanges the bits of x under mask with those shift places higher.
func swap(x, mask uint64, shift uint) uint64 {
	t := (x>>shift ^ x) & mask
	return x ^ t ^ t<<shift
}

// cross exchanges the bits of a under mask<<shift with those of b under mask.
func cross(a, b, mask uint64, shift uint) (uint64, uint64) {
	t := (a>>shift ^ b) & mask
	return a ^ t<<shift, b ^ t
}

// orderBits brings a word whose bit j is value j into the order of splitBits:
// a transposition of 8 x 4 bits.
func orderBits(x uint32) uint32 {
	v := swap(uint64(x), 0x0000cccc, 14)
	v = swap(v, 0x00aa00aa, 7)
	v = swap(v, 0x0c0c0c0c, 2)
	return uint32(swap(v, 0x22222222, 1))
}

// spreadBytes puts x's four bytes into the even bytes of the result.
func spreadBytes(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<16) & 0x0000ffff0000ffff
	return (v | v<<8) & 0x00ff00ff00ff00ff
}

// spreadNibbles puts x's eight nibbles into the bytes of the result.
func spreadNibbles(x uint32) uint64 {
	v := spreadBytes(x)
	return (v | v<<4) & low4
}

// spreadPairs puts the eight bit pairs of x's low 16 bits into the bytes of
// the result.
func spreadPairs(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<24) & 0x000000ff000000ff
	v = (v | v<<12) & 0x000f000f000f000f
	return (v | v<<6) & low2
}

// less32 takes 32 from each byte of x, all below 64, giving int8: it flips bit
// 5, which is then the sign, and extends it.
func less32(x uint64) uint64 {
	const sign = 0x2020202020202020
	x ^= sign
	return x | x&sign<<1 | x&sign<<2
}

// splitNibbles takes 32 bytes whose low nibbles are the 32 values of one unit
// and whose high nibbles are those of another, and writes both in Q4_0's order:
// byte j holds value j low and value j+16 high.
func splitNibbles(low, high, src []byte) {
	s, lo, hi := (*[32]byte)(src), (*[16]byte)(low), (*[16]byte)(high)
	a, b := load64(s[0:]), load64(s[8:])
	c, d := load64(s[16:]), load64(s[24:])
	store64(lo[0:], a&low4|c&low4<<4)
	store64(lo[8:], b&low4|d&low4<<4)
	store64(hi[0:], a>>4&low4|c&^low4)
	store64(hi[8:], b>>4&low4|d&^low4)
}

// splitBits takes 32 bytes whose bits k are the 32 values of unit k, and writes
// each of the eight units' bits as one word: value j is bit j/4 of byte j%4, so
// that four neighbours come out of the word with one shift and one mask.
func splitBits(dst, src []byte) {
	const odd = 0x00000000aaaaaaaa // bits 1, 3 … of the first word of two
	out := (*[32]byte)(dst)
	a, b, c, d := transposePairs(src)
	store64(out[0:], swap(a, odd, 31))
	store64(out[8:], swap(b, odd, 31))
	store64(out[16:], swap(c, odd, 31))
	store64(out[24:], swap(d, odd, 31))
}

// splitPairs takes 32 bytes whose bit pairs k are the 32 values of unit k, and
// writes each of the four units' pairs as 8 bytes: value j is pair j/8 of byte
// j%8, for the reason above.
func splitPairs(dst, src []byte) {
	out := (*[32]byte)(dst)
	a, b, c, d := transposePairs(src)
	store64(out[0:], a)
	store64(out[8:], b)
	store64(out[16:], c)
	store64(out[24:], d)
}

// transposePairs exchanges words and bit pairs: pair w of byte i of result k is
// pair k of byte i of word w.
func transposePairs(src []byte) (a, b, c, d uint64) {
	s := (*[32]byte)(src)
	a, b, c, d = load64(s[0:]), load64(s[8:]), load64(s[16:]), load64(s[24:])
	a, c = cross(a, c, low4, 4)
	b, d = cross(b, d, low4, 4)
	a, b = cross(a, b, low2of4, 2)
	c, d = cross(c, d, low2of4, 2)
	return a, b, c, d
}
