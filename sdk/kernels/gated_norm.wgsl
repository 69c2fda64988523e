// Per head: y = x / sqrt(mean(x²) + eps) ⊙ nw ⊙ act(gate), act silu (SILU 1) or sigmoid (0). x and y are [T][heads · D], nw [D],
// gate [T][stride] from off. Grid: heads, T.
struct Constants { d: u32, heads: u32, stride: u32, off: u32, eps: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
override W: u32 = 64u;
override SILU: u32 = 1u;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> nw: array<f32>;
@group(0) @binding(3) var<storage, read> gate: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
//!include lib/sum.wgsl

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let at = (wg.y * c.heads + wg.x) * c.d;
  let gate_at = wg.y * c.stride + c.off + wg.x * c.d;
  var s = 0.0;
  for (var i = lid; i < c.d; i += W) { s += x[at + i] * x[at + i]; }
  let scale = 1.0 / sqrt(sum_all(lid, s) / f32(c.d) + c.eps);
  for (var i = lid; i < c.d; i += W) {
    let g = gate[gate_at + i];
    y[at + i] = x[at + i] * scale * nw[i] * select(1.0, g, SILU == 1u) / (1.0 + exp(-g));
  }
}
