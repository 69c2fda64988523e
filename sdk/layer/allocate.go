package layer

import (
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/sdk/program"
	"google.golang.org/protobuf/proto"
)

// allocate chooses a buffer for every value of a regime. Buffers are used again
// once their value is read for the last time, the longest idle one first, so
// that neighbours seldom share one and can overlap on the GPU.
func (o *output) allocate(flow []*section) map[*Value]uint32 {
	place := map[*Value]uint32{}
	free := map[shapeKey][]uint32{}
	for k, all := range o.scratch {
		free[k] = slices.Clone(all)
	}
	written, dead := liveness(flow)
	for i := range written {
		for _, v := range written[i] {
			place[v] = o.take(v, free)
		}
		for _, v := range dead[i] {
			if v.fixed == "" {
				k := keyOf(v.shape)
				free[k] = append(free[k], place[v])
			}
		}
	}
	return place
}

// take gives v its fixed buffer, a free one of its shape, or a new one.
func (o *output) take(v *Value, free map[shapeKey][]uint32) uint32 {
	if v.fixed != "" {
		b := proto.CloneOf(v.shape)
		b.Name = v.fixed
		return o.namedBuffer(b).GetBuffer()
	}
	k := keyOf(v.shape)
	if f := free[k]; len(f) > 0 {
		free[k] = f[1:]
		return f[0]
	}
	b := proto.CloneOf(v.shape)
	b.Name = fmt.Sprintf("%s.%d", v.name, len(o.program.Buffers))
	i := o.addBuffer(b)
	o.scratch[k] = append(o.scratch[k], i)
	return i
}

// liveness gives, per operation in order, the values that it touches first and last. What an
// experts section touches lives to its end, for the section may run in several waves.
func liveness(flow []*section) (written, dead [][]*Value) {
	var order []*Value
	i := 0
	for _, s := range flow {
		end := i + len(s.ops) - 1
		for _, p := range s.ops {
			for _, v := range p.values() {
				if v.first < 0 {
					v.first = i
					order = append(order, v)
				}
				v.last = i
				if s.kind == program.Kind_EXPERTS {
					v.last = end
				}
			}
			i++
		}
	}
	written, dead = make([][]*Value, i), make([][]*Value, i)
	for _, v := range order {
		written[v.first] = append(written[v.first], v)
		dead[v.last] = append(dead[v.last], v)
	}
	return written, dead
}

// values lists an operation's values in a fixed order: by variable name.
func (p *op) values() []*Value {
	var names []string
	for n, b := range p.binds {
		if b.value != nil {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	var out []*Value
	for _, n := range names {
		out = append(out, p.binds[n].value)
	}
	return out
}
