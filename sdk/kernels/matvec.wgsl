// y[t][y_off + row] = W[row] · x[t] (+ res, or soft-capped), for the rows of one band of a weight.
// x is [T][units · 32], W a GPU form of rows × units · 32 at planes, y [T][y_stride]. Grid: ceil(rows / rows per group), T.
struct Constants { planes: vec4<u32>, rows: u32, units: u32, y_stride: u32, y_off: u32, eps: f32, cap: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/lanes.wgsl
//!choose rows all outs
//!choose x plain norm staged
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
//!type w from w
//!choose out put add cap

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let t = wg.y;
  let row0 = team_row(wg.x, lid);
  let base = x_row(t) * c.units * 8u;
  //!each r R: let w_g$r = min(row0 + $ru, c.rows - 1u) * c.units;
//!include lib/products.wgsl of w c.planes
  //!each r R: team_share(lid, $ru, w_sum$r);
  team_gather(lid);
  for (var r = lid % L; r < R; r += L) {
    if (row0 + r < c.rows) { put(t * c.y_stride + c.y_off + row0 + r, team_sum(lid, r)); }
  }
}
