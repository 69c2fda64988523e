// y[t][y_off + row] = act(G[row] · x[t]) · (U[row] · x[t]), for t < T: pair for many tokens.
// x is [T][units · 32]; gate and up are GPU forms of units · 32 columns, whose rows from gate_row0 and up_row0 are read (both may
// lie in one tensor); y is [T][y_stride].
// Grid: ceil(rows / (TR / 2)), ceil(T / BT).
struct Constants { gate: vec4<u32>, up: vec4<u32>, rows: u32, units: u32, gate_row0: u32, up_row0: u32, y_stride: u32, y_off: u32, limit: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
//!choose tile lanes shared
//!choose act silu gelu
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
//!type gate from gate
//!type up from up
//!include lib/tile_tokens.wgsl
//!include lib/tile_glu.wgsl

fn tile_begin(wg: vec3<u32>) { tokens_begin(wg); glu_begin(wg); }
fn x_at(i: u32) -> vec4<f32> { return x[i]; }
fn weight_unit(wg: vec3<u32>, r: u32, u: u32) -> array<vec4<f32>, 8> {
  let row = wg.x * (TR / 2u) + r / 2u;
  if (r % 2u == 0u) { return gate_load(c.gate, (c.gate_row0 + row) * c.units + u); }
  return up_load(c.up, (c.up_row0 + row) * c.units + u);
}
