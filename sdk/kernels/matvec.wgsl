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
  //!each r R: let g$r = min(row0 + $ru, c.rows - 1u) * c.units;
  //!each r R: var a$r = 0.0;
  let u0 = lid % L;
  let last = c.units - 1u;
  //!each k K
    //!each r R: var w$k_$r = w_fetch(c.planes, g$r + min(u0 + $ku * L, last));
  //!end
  x_begin(base, lid); // while the weights are on their way
  for (var u = u0; u < c.units; u += K * L) {
    //!each k K
    if (u + $ku * L < c.units) {
      let v = x_unit(base, u + $ku * L);
      //!each r R: a$r += w_dot(w$k_$r, g$r + u + $ku * L, v);
    }
    //!end
    let next = u + K * L;
    if (next < c.units) {
      //!each k K
        //!each r R: w$k_$r = w_fetch(c.planes, g$r + min(next + $ku * L, last));
      //!end
    }
  }
  //!each r R: team_share(lid, $ru, a$r);
  team_gather(lid);
  for (var r = lid % L; r < R; r += L) {
    if (row0 + r < c.rows) { put(t * c.y_stride + c.y_off + row0 + r, team_sum(lid, r)); }
  }
}
