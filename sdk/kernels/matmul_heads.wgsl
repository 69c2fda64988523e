// matvec_heads for many tokens: y[t][h · y_step + row] = W_h[row] · x(t, h), t < step.T, for those rows of W that lie in one band
// of it. W is the heads' matrices one after the other, head_rows rows each; the band has rows of them from row0 on.
// x is [T][x_stride], x(t, h) its units · 32 values from h · x_step; strides in vec4s. y is [T][y_stride].
// Grid: ceil(head_rows / TR), ceil(T / BT), heads that the band touches.
struct Constants { planes: vec4<u32>, rows: u32, units: u32, row0: u32, head_rows: u32, x_stride: u32, x_step: u32, y_stride: u32, y_step: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
//!choose tile lanes shared
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
//!type w from w
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn tile_begin(wg: vec3<u32>) {
  tile_slots = min(BT, step.T - wg.y * BT);
  tile_rows = min(TR, c.head_rows - wg.x * TR);
}
fn row_of(i: u32) -> u32 { return i % TR; }
fn head_of(wg: vec3<u32>) -> u32 { return c.row0 / c.head_rows + wg.z; }
fn x_at(i: u32) -> vec4<f32> { return x[i]; }
fn slot_x(wg: vec3<u32>, s: u32) -> u32 { return (wg.y * BT + s) * c.x_stride + head_of(wg) * c.x_step; }
fn slot_y(wg: vec3<u32>, s: u32) -> u32 { return (wg.y * BT + s) * c.y_stride + head_of(wg) * c.y_step; }

// The row of the band that is row r of the tile: of another band's rows it is any of this one's.
fn weight_unit(wg: vec3<u32>, r: u32, u: u32) -> array<vec4<f32>, 8> {
  let g = head_of(wg) * c.head_rows + wg.x * TR + r;
  return w_load(c.planes, (clamp(g, c.row0, c.row0 + c.rows - 1u) - c.row0) * c.units + u);
}

// Writes row row of the head where it lies in the band.
fn put_row(wg: vec3<u32>, at: u32, row: u32, v: f32) {
  let g = head_of(wg) * c.head_rows + row;
  if (row < c.head_rows && g >= c.row0 && g < c.row0 + c.rows) { y[at + row] = v; }
}

fn finish(wg: vec3<u32>, at: u32, r: u32, v: vec4<f32>) {
  let row = wg.x * TR + r;
  put_row(wg, at, row, v.x);
  put_row(wg, at, row + 1u, v.y);
  put_row(wg, at, row + 2u, v.z);
  put_row(wg, at, row + 3u, v.w);
}
