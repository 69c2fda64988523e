// y[t][row] = (res[t][row] +) Σ_k pw[t][k] · (D_e[row] · act[t][k]), e = picks[t][k], summed in pick order.
// act is [T][top_k][units · 32], y [T][rows]. One group computes all top_k terms of its rows, so the order of the sum is
// fixed. Grid: ceil(rows / rows per group), T.
struct Constants { down: vec4<u32>, rows: u32, units: u32, stride: u32, top_k: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/lanes.wgsl
@group(0) @binding(1) var<storage, read> act: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bank: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> picks: array<u32>;
@group(0) @binding(4) var<storage, read> residency: array<u32>;
@group(0) @binding(5) var<storage, read> pw: array<f32>;
//!choose out put add
//!type down from bank

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let t = wg.y;
  let row0 = team_row(wg.x, lid);
  //!each r R: let g$r = min(row0 + $ru, c.rows - 1u) * c.units;
  //!each r R: var a$r = 0.0;
  var total: array<f32, R>;
  for (var k = 0u; k < c.top_k; k++) {
    let pick = t * c.top_k + k;
    let at = c.down + vec4<u32>(residency[picks[pick]] * c.stride);
    //!each r R: a$r = 0.0;
    for (var u = lid % L; u < c.units; u += L) {
      let i = (pick * c.units + u) * 8u;
      let x = array<vec4<f32>, 8>(act[i], act[i + 1u], act[i + 2u], act[i + 3u], act[i + 4u], act[i + 5u], act[i + 6u], act[i + 7u]);
      //!each r R: let w$r = down_fetch(at, g$r + u);
      //!each r R: a$r += down_dot(w$r, g$r + u, x);
    }
    //!each r R: team_share(lid, $ru, a$r);
    team_gather(lid);
    for (var r = lid % L; r < R; r += L) { total[r] += pw[pick] * team_sum(lid, r); }
    workgroupBarrier();
  }
  for (var r = lid % L; r < R; r += L) {
    if (row0 + r < c.rows) { put(t * c.rows + row0 + r, total[r]); }
  }
}
