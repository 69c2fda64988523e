// y[t][y_off + row] = W[row] · x[t] (+ res), for t < T and the rows of one band of a weight: matvec for many tokens.
// x is [T][units · 32], W a GPU form of rows × units · 32 at planes, y [T][y_stride]. Grid: ceil(rows / TR), ceil(T / BT).
struct Constants { planes: vec4<u32>, rows: u32, units: u32, y_stride: u32, y_off: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
//!choose tile lanes shared
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
//!type w from w
//!choose out put add
//!include lib/tile_tokens.wgsl
//!include lib/tile_rows.wgsl

fn tile_begin(wg: vec3<u32>) { tokens_begin(wg); rows_begin(wg); }
fn x_at(i: u32) -> vec4<f32> { return x[i]; }
fn weight_unit(wg: vec3<u32>, r: u32, u: u32) -> array<vec4<f32>, 8> { return w_load(c.planes, (wg.x * TR + r) * c.units + u); }
