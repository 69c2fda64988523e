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
