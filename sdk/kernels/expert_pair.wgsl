// y[t][k][row] = act(G_e[row] · x[t]) · (U_e[row] · x[t]) for e = picks[t][k], a resident expert.
// The record of slot s starts at s · stride (in 16 bytes); gate and up are planes within it, gate_row0 and up_row0 the first
// rows where both lie in one tensor. y is [T][top_k][rows]. Grid: ceil(rows / rows per group), T, top_k.
struct Constants { gate: vec4<u32>, up: vec4<u32>, rows: u32, units: u32, stride: u32, gate_row0: u32, up_row0: u32, top_k: u32, eps: f32, limit: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/lanes.wgsl
//!include lib/rows_all.wgsl
//!choose x plain norm staged
//!choose act silu gelu
@group(0) @binding(3) var<storage, read> bank: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> picks: array<u32>;
@group(0) @binding(5) var<storage, read> residency: array<u32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
//!type gate from bank
//!type up from bank
//!include lib/pair.wgsl

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let pick = wg.y * c.top_k + wg.z;
  let record = vec4<u32>(residency[picks[pick]] * c.stride);
  pair_rows(wg.x, lid, wg.y, c.gate + record, c.gate_row0, c.up + record, c.up_row0, pick * c.rows);
}
