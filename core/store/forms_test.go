package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// A store holds the GPU forms of sdk/ggml as they were when it was made. Where this
// fails, a form has changed: raise store.Version, so that stores of the old form
// are refused, and put the new digest here. A type that was added is no such change.
func TestFormsOfThisVersion(t *testing.T) {
	want := map[ggml.Type]string{
		ggml.F32:    "2d58456943ea",
		ggml.F16:    "07846e0d4740",
		ggml.Q4_0:   "d80e4fb694a8",
		ggml.Q4_1:   "76b3cebbd303",
		ggml.Q5_0:   "72bff67f4093",
		ggml.Q5_1:   "ab01fb6843d0",
		ggml.Q8_0:   "267205e94dfa",
		ggml.Q2_K:   "1d92f49afe1b",
		ggml.Q3_K:   "b8288d353688",
		ggml.Q4_K:   "ab7efbf53f3d",
		ggml.Q5_K:   "658c4b56dee3",
		ggml.Q6_K:   "8d0c7c5a0dc8",
		ggml.IQ4_NL: "d80e4fb694a8",
		ggml.IQ4_XS: "df6c22e20933",
		ggml.BF16:   "07846e0d4740",
		ggml.MXFP4:  "ad47580734c3",
	}
	for _, typ := range allTypes() {
		const rows, cols = 8, 512
		raw := noise(rand.New(rand.NewPCG(1, 2)), "x", typ, cols, rows).Data
		form, _ := ggml.Form(typ)
		_, size, err := form.Planes(rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, size)
		if err := form.Pack(dst, raw, rows, cols); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(dst)
		if have := hex.EncodeToString(sum[:6]); have != want[typ] {
			t.Errorf("%v: have digest %s, want %q", typ, have, want[typ])
		}
	}
}
