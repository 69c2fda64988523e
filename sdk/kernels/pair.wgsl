// y[t][y_off + row] = act(G[row] · x[t]) · (U[row] · x[t]): the first half of a gated FFN.
// x is [T][units · 32]; gate and up are GPU forms of units · 32 columns, whose rows
// from gate_row0 and up_row0 are read (both may lie in one tensor); y is [T][y_stride]. Grid: ceil(rows / rows per group), T.
struct Constants { gate: vec4<u32>, up: vec4<u32>, rows: u32, units: u32, gate_row0: u32, up_row0: u32, y_stride: u32, y_off: u32, eps: f32, limit: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/lanes.wgsl
//!include lib/rows_all.wgsl
//!choose x plain norm staged
//!choose act silu gelu
@group(0) @binding(3) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
//!type gate from gate
//!type up from up
//!include lib/pair.wgsl

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  pair_rows(wg.x, lid, wg.y, c.gate, c.gate_row0, c.up, c.up_row0, wg.y * c.y_stride + c.y_off);
}
