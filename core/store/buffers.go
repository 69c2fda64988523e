package store

import "unsafe"

// buffers lends out scratch memory, aligned for direct reads. As many are in use as
// reads at once; of those returned, maxIdle are kept.
type buffers struct {
	size int
	free chan []byte
}

// maxIdle bounds the memory that waits for the next read.
const maxIdle = 32

func newBuffers(size int) *buffers {
	return &buffers{size: size, free: make(chan []byte, maxIdle)}
}

// get returns a buffer of the size; its contents are anything.
func (b *buffers) get() []byte {
	select {
	case buf := <-b.free:
		return buf
	default:
		return aligned(b.size)
	}
}

// put takes a buffer back.
func (b *buffers) put(buf []byte) {
	select {
	case b.free <- buf:
	default:
	}
}

// aligned is n bytes of memory at a multiple of align.
func aligned(n int) []byte {
	buf := make([]byte, n+align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(buf))) & (align - 1) // the heap does not move
	return buf[skip:][:n:n]
}
