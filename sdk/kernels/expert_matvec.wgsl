// y[t][k][row] = D_e[row] · act[t][k], e = picks[t][k]: expert_down without its sum, which moe_sum makes then. On a GPU the two
// are faster, for all picks are computed at once. act is [T][top_k][units · 32], y [T][top_k][rows].
// Grid: ceil(rows / rows per group), T, top_k.
struct Constants { down: vec4<u32>, rows: u32, units: u32, stride: u32, top_k: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/lanes.wgsl
@group(0) @binding(1) var<storage, read> act: array<vec4<f32>>;
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
  var acc: array<f32, R>;
  for (var r = 0u; r < R; r++) { acc[r] = 0.0; }
  for (var u = lid % L; u < c.units; u += L) {
    let i = pick * c.units * 8u + u * 8u;
    let x = array<vec4<f32>, 8>(act[i], act[i + 1u], act[i + 2u], act[i + 3u], act[i + 4u], act[i + 5u], act[i + 6u], act[i + 7u]);
    for (var r = 0u; r < R; r++) {
      if (row0 + r < c.rows) { acc[r] += down_dot(at, (row0 + r) * c.units + u, x); }
    }
  }
  for (var r = 0u; r < R; r++) { partial[r * W + lid] = acc[r]; }
  workgroupBarrier();
  for (var r = lid % L; r < R; r += L) {
    if (row0 + r < c.rows) { y[pick * c.rows + row0 + r] = team_sum(lid, r); }
  }
}
