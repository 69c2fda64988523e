// Picks the K experts of greatest rank per token, the lower id among equals, NaN last, and their weights: p / max(Σ p, 2^-14) · scale
// (NORM 1), else p · scale, of probabilities p of r · in_scale; scaled: times expert_scale[id]. Of GROUPS runs of experts only the USED
// best take part. r is [T][E] router logits; picks and pw [T][K] in pick order. Grid: T.
struct Constants { scale: f32, in_scale: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
override E: u32 = 32u;
override K: u32 = 4u;
override NORM: u32 = 1u;
override GROUPS: u32 = 1u; // E is a multiple of it, of twice as much where it is not 1
override USED: u32 = 1u;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> r: array<f32>;
@group(0) @binding(2) var<storage, read_write> picks: array<u32>;
@group(0) @binding(3) var<storage, read_write> pw: array<f32>;
var<workgroup> prob: array<f32, E>;
var<workgroup> rank: array<u32, E>; // order_key; 0 where the expert's group is left out
var<workgroup> chosen: array<u32, K>;
//!include lib/order.wgsl
//!choose score sigmoid softmax
//!choose weight plain scaled
//!include lib/groups.wgsl

fn logit(t: u32, e: u32) -> f32 { return r[t * E + e] * c.in_scale; }

// 1 where an expert of rank other comes before one of rank key, the lower id among equals.
fn before(other: u32, key: u32, lower: bool) -> u32 {
  return select(0u, 1u, other > key || (other == key && lower));
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let t = wg.x;
  scores_of(t, lid);
  if (GROUPS > 1u) { keep_groups(lid); }
  workgroupBarrier();
  for (var e = lid; e < E; e += W) {
    let key = rank[e];
    var above = 0u; // experts that come before e
    var o = 0u;
    for (; o + 4u <= E; o += 4u) {
      above += before(rank[o], key, o < e) + before(rank[o + 1u], key, o + 1u < e) + before(rank[o + 2u], key, o + 2u < e) +
        before(rank[o + 3u], key, o + 3u < e);
    }
    for (; o < E; o++) { above += before(rank[o], key, o < e); }
    if (above < K) { chosen[above] = e; }
  }
  workgroupBarrier();
  for (var k = lid; k < K; k += W) {
    var f = c.scale;
    if (NORM == 1u) {
      var sum = 0.0;
      for (var i = 0u; i < K; i++) { sum += prob[chosen[i]]; }
      f = f / select(sum, 6.103515625e-5, sum < 6.103515625e-5); // a NaN shows
    }
    picks[t * K + k] = chosen[k];
    pw[t * K + k] = weight_of(chosen[k], prob[chosen[k]] * f);
  }
}
