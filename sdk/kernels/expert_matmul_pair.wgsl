// y[p][row] = act(G_e[row] · x[t]) · (U_e[row] · x[t]) for the pairs p = t · top_k + pick of each expert tile of the wave:
// expert_pair for many tokens. The record of slot s starts at s · stride (in 16 bytes); gate and up are planes within it,
// gate_row0 and up_row0 the first rows where both lie in one tensor. x is [T][units · 32], y [T][top_k][rows].
// Grid: ceil(rows / (TR / 2)), G.
struct Constants { gate: vec4<u32>, up: vec4<u32>, rows: u32, units: u32, stride: u32, gate_row0: u32, up_row0: u32, top_k: u32, limit: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!choose tile lanes shared
//!choose act silu gelu
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bank: array<vec4<u32>>;
//!include lib/tile_pairs.wgsl
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
//!type gate from bank
//!type up from bank
//!include lib/tile_glu.wgsl

fn tile_begin(wg: vec3<u32>) { pairs_begin(wg); glu_begin(wg); }
fn x_at(i: u32) -> vec4<f32> { return x[i]; }
fn slot_x(wg: vec3<u32>, s: u32) -> u32 { return pairs[tile_first + s] / c.top_k * c.units * 8u; }
fn weight_unit(wg: vec3<u32>, r: u32, u: u32) -> array<vec4<f32>, 8> {
  let row = wg.x * (TR / 2u) + r / 2u;
  if (r % 2u == 0u) { return gate_load(c.gate + tile_record, (c.gate_row0 + row) * c.units + u); }
  return up_load(c.up + tile_record, (c.up_row0 + row) * c.units + u);
}
