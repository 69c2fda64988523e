// y[t] = x(t) / sqrt(mean(x(t)²) + eps) · nw, rows of n values, perhaps added to a residual; x(t) is row t of x, or row outs[t].
// Grid: T. For readers that can't take the norm in themselves, or should not: several workgroups would each compute it.
struct Constants { n: u32, eps: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> nw: array<f32>;
//!choose rows all outs
//!choose out put add scaled
//!include lib/sum.wgsl

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let base = wg.x * c.n;
  let source = x_row(wg.x) * c.n;
  var s = 0.0;
  for (var i = lid; i < c.n; i += W) { s += x[source + i] * x[source + i]; }
  let scale = 1.0 / sqrt(sum_all(lid, s) / f32(c.n) + c.eps);
  for (var i = lid; i < c.n; i += W) { put(base + i, x[source + i] * scale * nw[i]); }
}
