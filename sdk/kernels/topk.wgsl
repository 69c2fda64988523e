// Picks the K experts of greatest rank per token, the lower id among equals, NaN last, and their weights:
// pw = p / max(Σ p, 2^-14) · scale (NORM 1), else p · scale. r is [T][E] router logits; picks and pw [T][K] in pick order.
// Grid: T.
struct Constants { scale: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
override E: u32 = 32u;
override K: u32 = 4u;
override NORM: u32 = 1u;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> r: array<f32>;
@group(0) @binding(2) var<storage, read_write> picks: array<u32>;
@group(0) @binding(3) var<storage, read_write> pw: array<f32>;
var<workgroup> prob: array<f32, E>;
var<workgroup> rank: array<u32, E>; // order_key; 0 once picked
var<workgroup> best: array<u32, W>;
var<workgroup> chosen: array<u32, K>;
//!include lib/order.wgsl
//!choose score sigmoid softmax

// The better of two expert ids; E stands for none.
fn better(a: u32, b: u32) -> u32 {
  if (a >= E) { return b; }
  if (b >= E) { return a; }
  let x = rank[a];
  let y = rank[b];
  if (y > x || (y == x && b < a)) { return b; }
  return a;
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let t = wg.x;
  scores_of(t, lid);
  workgroupBarrier();
  for (var k = 0u; k < K; k++) {
    var mine = E;
    for (var e = lid; e < E; e += W) { mine = better(mine, e); }
    best[lid] = mine;
    workgroupBarrier();
    if (lid == 0u) {
      var top = best[0];
      for (var i = 1u; i < W; i++) { top = better(top, best[i]); }
      chosen[k] = top;
      rank[top] = 0u;
    }
    workgroupBarrier();
  }
  if (lid == 0u) {
    var sum = 0.0;
    for (var k = 0u; k < K; k++) { sum += prob[chosen[k]]; }
    var f = c.scale;
    if (NORM == 1u) { f = f / max(sum, 6.103515625e-5); }
    for (var k = 0u; k < K; k++) {
      picks[t * K + k] = chosen[k];
      pw[t * K + k] = prob[chosen[k]] * f;
    }
  }
}
