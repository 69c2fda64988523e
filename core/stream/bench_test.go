package stream

import (
	"context"
	"testing"
)

type noLoader struct{}

func (noLoader) Begin(context.Context, Key, int, int) (Transfer, int, error) {
	return noLoader{}, 2, nil
}
func (noLoader) Read(context.Context, int) error { return nil }
func (noLoader) End(error) error                 { return nil }

// BenchmarkEnsure asks for 8 of 128 experts, layer after layer of 48.
func BenchmarkEnsure(b *testing.B) {
	for name, slots := range map[string]int{"hits": 48 * 128, "misses": 8} {
		b.Run(name, func(b *testing.B) {
			banks := []Bank{{Layers: layers(0, 48), Experts: 128, RecordBytes: 1, Slots: slots}}
			p, err := New(Config{Banks: banks, Readers: 4, Loader: noLoader{}})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			experts := []int{3, 77, 12, 101, 9, 64, 33, 120}
			for l := range 48 {
				use(b, p, l, experts...)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				pins, err := p.Ensure(b.Context(), i%48, experts)
				if err != nil {
					b.Fatal(err)
				}
				pins.Release()
			}
		})
	}
}
