// Joins the runs of attn_split or attn_chunk for each token t: y[head] = Σ_run exp(m_run - M) · values_run /
// Σ_run exp(m_run - M) · sum_run, M = max m_run, over the runs of lib/runs.wgsl of min(pos0 + t + 1, window) positions (all where window is 0).
// part is [run][T][head][HD + 2], HD the width of a value, y [rows][heads · HD]. Grid: heads, PARTS, T.
//
// W / RG lanes have a pair of columns each; RG such groups share the runs. A lane's softmax goes on from four runs to
// the next four, all of which it reads at once; the groups join at the end.
struct Constants { heads: u32, window: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
override HD: u32 = 64u;
override W: u32 = 64u;
override RG: u32 = 1u;    // divides W
override PARTS: u32 = 1u; // workgroups that share the values of a head
//!include lib/runs.wgsl
const COLUMNS: u32 = W / RG;
const LOW: f32 = -3.4e38;
@group(0) @binding(1) var<storage, read> part: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2<f32>>;
var<workgroup> values: array<vec2<f32>, W>;
var<workgroup> stats: array<vec2<f32>, RG>; // m and sum

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let h = wg.x;
  let t = wg.z;
  let group = lid / COLUMNS;
  var seen = step.pos0 + t + 1u;
  if (c.window > 0u) { seen = min(seen, c.window); }
  let run = run_length(seen);
  let runs = (seen + run - 1u) / run;
  let row = HD / 2u + 1u;
  let next = step.T * c.heads * row; // from a run to the next
  for (var i0 = wg.y * COLUMNS; i0 < HD / 2u; i0 += COLUMNS * PARTS) {
    let i = min(i0 + lid % COLUMNS, HD / 2u - 1u);
    let at = (t * c.heads + h) * row;
    var m = LOW;
    var sum = 0.0;
    var v = vec2<f32>(0.0);
    for (var s = group; s < runs; s += 4u * RG) {
      let o0 = at + s * next;
      let o1 = at + min(s + RG, runs - 1u) * next; // runs that are not there are the last one, without weight
      let o2 = at + min(s + 2u * RG, runs - 1u) * next;
      let o3 = at + min(s + 3u * RG, runs - 1u) * next;
      let p0 = part[o0];
      let p1 = part[o1];
      let p2 = part[o2];
      let p3 = part[o3];
      let v0 = part[o0 + 1u + i];
      let v1 = part[o1 + 1u + i];
      let v2 = part[o2 + 1u + i];
      let v3 = part[o3 + 1u + i];
      let top = max(m, max(max(p0.x, p1.x), max(p2.x, p3.x)));
      let f = exp(m - top);
      let e0 = exp(p0.x - top);
      let e1 = select(0.0, exp(p1.x - top), s + RG < runs);
      let e2 = select(0.0, exp(p2.x - top), s + 2u * RG < runs);
      let e3 = select(0.0, exp(p3.x - top), s + 3u * RG < runs);
      sum = sum * f + ((e0 * p0.y + e1 * p1.y) + (e2 * p2.y + e3 * p3.y));
      v = v * f + ((e0 * v0 + e1 * v1) + (e2 * v2 + e3 * v3));
      m = top;
    }
    if (RG > 1u) {
      values[lid] = v;
      if (lid % COLUMNS == 0u) { stats[group] = vec2<f32>(m, sum); }
      workgroupBarrier();
      for (var g = 0u; g < RG; g++) { m = max(m, stats[g].x); }
      v = vec2<f32>(0.0);
      sum = 0.0;
      for (var g = 0u; g < RG; g++) {
        let e = exp(stats[g].x - m);
        sum += e * stats[g].y;
        v += e * values[g * COLUMNS + lid % COLUMNS];
      }
      workgroupBarrier();
    }
    if (group == 0u && i0 + lid % COLUMNS < HD / 2u) { y[((step.row0 + t) * c.heads + h) * (HD / 2u) + i] = v / sum; }
  }
}
