// y[t] = x[t] / sqrt(mean(x[t]²) + eps) · nw, rows of n values, perhaps added to a residual. Grid: T. For readers that can't
// take the norm in themselves.
struct Constants { n: u32, eps: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> nw: array<f32>;
//!choose out put add scaled
var<workgroup> squares: array<f32, W>;

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let base = wg.x * c.n;
  var s = 0.0;
  for (var i = lid; i < c.n; i += W) { s += x[base + i] * x[base + i]; }
  squares[lid] = s;
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < W; i++) { total += squares[i]; }
  let scale = 1.0 / sqrt(total / f32(c.n) + c.eps);
  for (var i = lid; i < c.n; i += W) { put(base + i, x[base + i] * scale * nw[i]); }
}
