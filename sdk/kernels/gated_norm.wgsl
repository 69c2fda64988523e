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

struct Kept { x: f32, nw: f32, gate: f32 }

// What value i takes of a head that begins at at of x and y and at gate_at of its row of gates; zeros behind its end.
fn fetch(i: u32, at: u32, gate_at: u32) -> Kept {
  var k = Kept(0.0, 0.0, 0.0);
  if (i < c.d) { k = Kept(x[at + i], nw[i], gate[gate_at + i]); }
  return k;
}

fn write(i: u32, at: u32, k: Kept, scale: f32) {
  if (i < c.d) { y[at + i] = k.x * scale * k.nw * select(1.0, k.gate, SILU == 1u) / (1.0 + exp(-k.gate)); }
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let at = (wg.y * c.heads + wg.x) * c.d;
  let gate_at = wg.y * c.stride + c.off + wg.x * c.d;
  let own = fetch(lid, at, gate_at); // on its way while the squares are summed
  var s = own.x * own.x;
  for (var i = lid + W; i < c.d; i += W) { s += x[at + i] * x[at + i]; }
  let scale = 1.0 / sqrt(sum_all(lid, s) / f32(c.d) + c.eps);
  write(lid, at, own, scale);
  for (var i = lid + W; i < c.d; i += W) { write(i, at, fetch(i, at, gate_at), scale); }
}
