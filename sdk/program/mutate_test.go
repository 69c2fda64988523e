package program

import (
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// mutate changes one random field somewhere in m: a number to an extreme, a
// string to another, a list by an element less, twice or empty.
func mutate(m protoreflect.Message, r *rand.Rand) {
	var set []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool { set = append(set, f); return true })
	all := m.Descriptor().Fields()
	if len(set) == 0 || r.IntN(8) == 0 {
		set = nil
		for i := range all.Len() {
			set = append(set, all.Get(i))
		}
	}
	if len(set) == 0 {
		return
	}
	f := set[r.IntN(len(set))]
	switch {
	case f.IsMap():
		m.Clear(f)
	case f.IsList():
		mutateList(m, f, r)
	case f.Kind() == protoreflect.MessageKind && m.Has(f) && r.IntN(20) > 0:
		mutate(m.Mutable(f).Message(), r)
	case f.Kind() == protoreflect.MessageKind:
		m.Set(f, m.NewField(f))
	default:
		m.Set(f, extreme(f.Kind(), r))
	}
}

func mutateList(m protoreflect.Message, f protoreflect.FieldDescriptor, r *rand.Rand) {
	l := m.Mutable(f).List()
	n := l.Len()
	switch what := r.IntN(10); {
	case n == 0 && f.Kind() == protoreflect.MessageKind:
		l.AppendMutable()
	case n == 0:
		l.Append(extreme(f.Kind(), r))
	case what == 0:
		l.Truncate(r.IntN(n))
	case what == 1:
		l.Append(l.Get(r.IntN(n)))
	case what == 2:
		i, j := r.IntN(n), r.IntN(n)
		a, b := l.Get(i), l.Get(j)
		l.Set(i, b)
		l.Set(j, a)
	case f.Kind() == protoreflect.MessageKind:
		mutate(l.Get(r.IntN(n)).Message(), r)
	default:
		l.Set(r.IntN(n), extreme(f.Kind(), r))
	}
}

// extreme is a value that checks get wrong.
func extreme(k protoreflect.Kind, r *rand.Rand) protoreflect.Value {
	n := []uint64{0, 1, 2, 3, 31, 64, 255, 65535, 65536, math.MaxInt32, math.MaxUint32, 1 << 40, math.MaxInt64, math.MaxUint64}[r.IntN(14)]
	switch k {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n&1 == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(n%12) - 1))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32([]float64{0, 1, -1, math.Inf(1), math.NaN()}[n%5]))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0, 1, -1, math.Inf(1), math.NaN()}[n%5])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(make([]byte, n%64))
	}
	return protoreflect.ValueOfString([]string{"", "x", "blk.0.attn_q.weight", "\x00", "struct Constants { a: u32 }"}[n%5])
}

// A thousand programs with one to eight faults each: none may panic or take
// long, and what still passes must hold what the host relies on.
func TestValidateSurvivesMutations(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	whole, passed := small(t), 0
	for range 1000 {
		b := *whole
		b.header, b.plan, b.prog = proto.Clone(whole.header).(*Header), proto.Clone(whole.plan).(*Plan), proto.Clone(whole.prog).(*Program)
		placed := proto.Clone(&EncodeRequest{Weights: whole.placed, Records: whole.records}).(*EncodeRequest)
		for range 1 + r.IntN(8) {
			mutate([]proto.Message{b.plan, b.prog, b.prog, b.prog, placed, b.header}[r.IntN(6)].ProtoReflect(), r)
		}
		b.placed, b.records = placed.Weights, placed.Records
		start := time.Now()
		planned, err := b.validatePlan(), b.validate(testBounds())
		if err := Text(io.Discard, b.plan, b.placed, b.records, b.prog); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("one program took %v", d)
		}
		if planned == nil && err == nil {
			passed++
			replay(t, b.prog, testBounds())
		}
	}
	t.Logf("%d passed", passed)
}
