package store

import (
	"encoding/binary"
	"hash/crc32"
)

// A checksum is a CRC-32C: the CPU computes it faster than a disk reads, and it
// finds every fault of up to 32 bits in a row.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var zeros [align]byte

// checksum is that of data.
func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// extend is the checksum of what sum covers and data after it.
func extend(sum uint32, data []byte) uint32 { return crc32.Update(sum, castagnoli, data) }

// combine is the checksum of two stretches of data one after the other, of theirs and the length of the second. A CRC is linear:
// data behind a stretch multiply its CRC, as a polynomial over GF(2), by x for each bit.
func combine(first, second uint32, n int64) uint32 {
	shift, power := uint32(one), uint32(one>>8) // x^0, and x^8: a byte's
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = multiply(shift, power)
		}
		power = multiply(power, power)
	}
	return multiply(first, shift) ^ second
}

// one is the polynomial 1: CRC-32C numbers powers of x from the highest bit down.
const one = 1 << 31

// multiply is the product of two polynomials modulo CRC-32C's.
func multiply(a, b uint32) (product uint32) {
	for bit := uint32(one); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		carry := b & 1
		if b >>= 1; carry != 0 {
			b ^= crc32.Castagnoli
		}
	}
	return product
}

// encodeSums is the file of checksums: 4 bytes each, little-endian.
func encodeSums(sums []uint32) []byte {
	out := make([]byte, 0, 4*len(sums))
	for _, s := range sums {
		out = binary.LittleEndian.AppendUint32(out, s)
	}
	return out
}

// decodeSums reads whole checksums.
func decodeSums(data []byte) []uint32 {
	out := make([]uint32, len(data)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out
}
