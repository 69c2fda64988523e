// A matrix for each head: y[t][h · y_step + row] = W_h[row] · x(t, h), for those rows of W that lie in one band of it. W is the
// heads' matrices one after the other, head_rows rows each; the band has rows of them from row0 on.
// x is [T][x_stride], x(t, h) its units · 32 values from h · x_step; strides in vec4s. y is [T][y_stride].
// Grid: ceil(head_rows / rows per group), heads that the band touches, T.
struct Constants { planes: vec4<u32>, rows: u32, units: u32, row0: u32, head_rows: u32, x_stride: u32, x_step: u32, y_stride: u32, y_step: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/lanes.wgsl
//!choose x plain staged
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
//!type w from w
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let h = c.row0 / c.head_rows + wg.y;
  let row = team_row(wg.x, lid);
  let first = h * c.head_rows; // of the head's rows
  let behind = min(first + c.head_rows, c.row0 + c.rows);
  let base = wg.z * c.x_stride + h * c.x_step;
  //!each r R: let w_g$r = (clamp(first + row + $ru, c.row0, behind - 1u) - c.row0) * c.units;
//!include lib/products.wgsl of w c.planes
  //!each r R: team_share(lid, $ru, w_sum$r);
  team_gather(lid);
  for (var r = lid % L; r < R; r += L) {
    let g = first + row + r;
    if (g >= c.row0 && g < behind) { y[wg.z * c.y_stride + h * c.y_step + row + r] = team_sum(lid, r); }
  }
}
