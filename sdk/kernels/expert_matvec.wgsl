// y[t][k][row] = D_e[row] · x[t][k], e = picks[t][k]: expert_down without its sum, which moe_sum makes then. On a GPU the two
// are faster, for all picks are computed at once. x is [T][top_k][units · 32], y [T][top_k][rows].
// Grid: ceil(rows / rows per group), T, top_k.
struct Constants { down: vec4<u32>, rows: u32, units: u32, stride: u32, top_k: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/lanes.wgsl
//!choose x plain staged
@group(0) @binding(2) var<storage, read> bank: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> picks: array<u32>;
@group(0) @binding(4) var<storage, read> residency: array<u32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
//!type down from bank

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let pick = wg.y * c.top_k + wg.z;
  let row0 = team_row(wg.x, lid);
  let at = c.down + vec4<u32>(residency[picks[pick]] * c.stride);
  let base = pick * c.units * 8u;
  //!each r R: let down_g$r = min(row0 + $ru, c.rows - 1u) * c.units;
//!include lib/products.wgsl of down at
  //!each r R: team_share(lid, $ru, down_sum$r);
  team_gather(lid);
  for (var r = lid % L; r < R; r += L) {
    if (row0 + r < c.rows) { y[pick * c.rows + row0 + r] = team_sum(lid, r); }
  }
}
