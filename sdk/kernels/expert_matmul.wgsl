// y[p][row] = D_e[row] · act[p] for the pairs p of each expert tile of the wave; moe_sum adds them up. The record of slot s
// starts at s · stride (in 16 bytes), down are planes within it. act is [T][top_k][units · 32], y [T][top_k][rows].
// Grid: ceil(rows / TR), G.
struct Constants { down: vec4<u32>, rows: u32, units: u32, stride: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!choose tile lanes shared
@group(0) @binding(1) var<storage, read> act: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bank: array<vec4<u32>>;
//!include lib/tile_pairs.wgsl
//!include lib/out_put.wgsl
//!type down from bank
//!include lib/tile_rows.wgsl

fn tile_begin(wg: vec3<u32>) { pairs_begin(wg); rows_begin(wg); }
fn x_at(i: u32) -> vec4<f32> { return act[i]; }
fn slot_x(wg: vec3<u32>, s: u32) -> u32 { return pairs[tile_first + s] * c.units * 8u; }
fn weight_unit(wg: vec3<u32>, r: u32, u: u32) -> array<vec4<f32>, 8> {
  return down_load(c.down + tile_record, (wg.x * TR + r) * c.units + u);
}
