// Joins the runs of attn_split or attn_chunk for each token t: y[head] = Σ_run exp(m_run - M) · values_run /
// Σ_run exp(m_run - M) · sum_run, M = max m_run, over ceil(min(pos0 + t + 1, window) / KEYS) runs (all positions where window is 0).
// part is [run][T][head][HD + 2], HD the width of a value, y [rows][heads · HD]. Grid: heads, PARTS, T.
struct Constants { heads: u32, window: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
override HD: u32 = 64u;
override KEYS: u32 = 128u;
override W: u32 = 64u;
override PARTS: u32 = 1u; // workgroups that share the values of a head
@group(0) @binding(1) var<storage, read> part: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
//!include lib/sum.wgsl

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let h = wg.x;
  let t = wg.z;
  var seen = step.pos0 + t + 1u;
  if (c.window > 0u) { seen = min(seen, c.window); }
  let runs = (seen + KEYS - 1u) / KEYS;
  var m = part[(t * c.heads + h) * (HD + 2u)];
  for (var s = lid; s < runs; s += W) { m = max(m, part[((s * step.T + t) * c.heads + h) * (HD + 2u)]); }
  m = max_all(lid, m);
  // Two values at a time: a software device ends long loops.
  for (var i = wg.y * W + lid; i < HD / 2u; i += W * PARTS) {
    var sum = 0.0;
    var v = vec2<f32>(0.0);
    for (var s = 0u; s < runs; s++) {
      let o = ((s * step.T + t) * c.heads + h) * (HD + 2u);
      let e = exp(part[o] - m);
      sum += e * part[o + 1u];
      v += e * vec2<f32>(part[o + 2u + 2u * i], part[o + 3u + 2u * i]);
    }
    let at = ((step.row0 + t) * c.heads + h) * HD + 2u * i;
    y[at] = v.x / sum;
    y[at + 1u] = v.y / sum;
  }
}
