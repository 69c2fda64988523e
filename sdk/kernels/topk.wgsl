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
var<workgroup> keys: array<u32, W>; // what each invocation offers: a key, and whose it is
var<workgroup> holders: array<u32, W>;
var<workgroup> chosen: array<u32, K>;
//!include lib/order.wgsl
//!choose score sigmoid softmax

// Offers the best of this invocation's experts that is not picked.
fn offer(lid: u32) {
  var key = 0u;
  var id = E;
  for (var e = lid; e < E; e += W) {
    if (rank[e] > key) {
      key = rank[e];
      id = e;
    }
  }
  keys[lid] = key;
  holders[lid] = id;
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let t = wg.x;
  scores_of(t, lid);
  offer(lid);
  for (var k = 0u; k < K; k++) {
    workgroupBarrier();
    var key = 0u;
    var id = E;
    for (var i = 0u; i < W; i++) {
      let other = keys[i];
      if (other > key || (other == key && holders[i] < id)) {
        key = other;
        id = holders[i];
      }
    }
    workgroupBarrier();
    if (id % W == lid) {
      chosen[k] = id;
      rank[id] = 0u;
      offer(lid);
    }
  }
  workgroupBarrier();
  for (var k = lid; k < K; k += W) {
    var f = c.scale;
    if (NORM == 1u) {
      var sum = 0.0;
      for (var i = 0u; i < K; i++) { sum += prob[chosen[i]]; }
      f = f / max(sum, 6.103515625e-5);
    }
    picks[t * K + k] = chosen[k];
    pw[t * K + k] = prob[chosen[k]] * f;
  }
}
