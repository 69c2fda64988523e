package program

import (
	"slices"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// kernels checks each kernel against its own WGSL and the device.
func (c *checker) kernels() {
	seen := map[string]bool{}
	c.decls = make([]*Decl, len(c.prog.GetKernels()))
	for i, k := range c.prog.GetKernels() {
		c.name("kernel", k.GetName(), seen)
		what := "kernel " + clip(k.GetName())
		d, err := ParseWGSL(k.GetWgsl())
		if err != nil {
			c.addf("%s: %w", what, err)
			continue
		}
		c.decls[i] = &d
		c.slots(what, k, &d)
		c.uniforms(what, k, &d)
		c.workgroup(what, &d)
		c.names(what, k)
	}
}

// slots checks that the declared slots are those of the WGSL.
func (c *checker) slots(what string, k *Kernel, d *Decl) {
	if len(k.GetSlots()) != len(d.Slots) {
		c.addf("%s: have %d slots, want %d as bound in its WGSL", what, len(k.GetSlots()), len(d.Slots))
		return
	}
	storage := 0
	for i, want := range d.Slots {
		have := k.GetSlots()[i]
		if have.GetName() != want.GetName() || have.GetAccess() != want.GetAccess() {
			c.addf("%s: slot %d: have %s %v, want %s %v as in its WGSL", what, i,
				clip(have.GetName()), have.GetAccess(), clip(want.GetName()), want.GetAccess())
		}
		if want.GetAccess() != Access_UNIFORM {
			storage++
		}
	}
	if most := limit(c.b.Limits.GetMaxBindings()); uint64(storage) > most {
		c.addf("%s: have %d storage bindings, want at most %d, the device's limit", what, storage, most)
	}
}

// uniforms checks that the step and the constants are bound at most once each, and the size of the latter.
func (c *checker) uniforms(what string, k *Kernel, d *Decl) {
	have := map[string]int{}
	for i, s := range d.Slots {
		if s.GetAccess() == Access_UNIFORM {
			have[d.Types[i]]++
			if t := d.Types[i]; t != stepType && t != constantsType {
				c.addf("%s: uniform %s: have type %s, want Step or Constants", what, clip(s.GetName()), clip(t))
			}
		}
	}
	for _, t := range []string{stepType, constantsType} {
		if have[t] > 1 {
			c.addf("%s: have %d uniforms of type %s, want one", what, have[t], t)
		}
	}
	want := d.ConstantBytes
	if have[constantsType] == 0 {
		want = 0
	}
	if k.GetConstantBytes() != want {
		c.addf("%s: have constant_bytes %d, want %d, the size of its Constants", what, k.GetConstantBytes(), want)
	}
}

// workgroup checks the entry point's shape.
func (c *checker) workgroup(what string, d *Decl) {
	if d.Workgroup[0] == 0 {
		c.addf("%s: have no @compute fn main, want one", what)
		return
	}
	n := uint64(d.Workgroup[0]) * uint64(d.Workgroup[1]) * uint64(d.Workgroup[2]) // each at most 2^16
	if most := limit(c.b.Limits.GetMaxInvocations()); n > most {
		c.addf("%s: have %d invocations in a workgroup, want at most %d, the device's limit", what, n, most)
	}
	if most := limit(c.b.Limits.GetWorkgroupBytes()); uint64(d.WorkgroupBytes) > most {
		c.addf("%s: have %d bytes of workgroup memory, want at most %d, the device's limit", what, d.WorkgroupBytes, most)
	}
	if d.NumWorkgroups {
		c.addf("%s: reads num_workgroups, want the grid's size in its constants: the host folds long grids", what)
	}
}

// names checks what only people and references read.
func (c *checker) names(what string, k *Kernel) {
	if len(k.GetRef()) > maxName {
		c.addf("%s: have a ref of %d bytes, want at most %d", what, len(k.GetRef()), maxName)
	}
	for _, p := range slices.Concat(sortedKeys(k.GetParams()), sortedKeys(k.GetTypes())) {
		if len(p) > maxName {
			c.addf("%s: have a param of %d bytes, want at most %d", what, len(p), maxName)
		}
	}
	for _, slot := range sortedKeys(k.GetTypes()) {
		if t := ggml.Type(k.GetTypes()[slot]); !t.Known() {
			c.addf("%s: types: %s: have %v, want a ggml type", what, clip(slot), t)
		}
	}
}
