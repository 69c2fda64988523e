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
//!choose weight plain scaled
//!include lib/order.wgsl
//!include lib/nan.wgsl
const RUNS: u32 = (E + 31u) / 32u; // runs of 32 experts, each of which sends its K best to the second round
const SECOND: u32 = (RUNS * K + 31u) / 32u; // runs of 32 of the second round
const KEYS: u32 = (RUNS + SECOND) * 8u;
const SENDS: u32 = RUNS * K;
const FOURS: u32 = (K + 3u) / 4u;
var<workgroup> prob: array<f32, E>;
var<workgroup> keys: array<vec4<u32>, KEYS>; // ranks as order_key, 0 where there is none; behind them those of the second round
var<workgroup> sent: array<u32, SENDS>; // the experts of the second round
var<workgroup> chosen: array<u32, K>;
var<workgroup> won: array<vec4<f32>, FOURS>; // the probabilities of those that were chosen
//!choose score sigmoid softmax
//!include lib/groups.wgsl

fn logit(t: u32, e: u32) -> f32 { return r[t * E + e] * c.in_scale; }

// How many of four keys, the first with number first, come before key, whose number is at: the lower number among equals.
fn before(four: vec4<u32>, first: u32, key: u32, at: u32) -> u32 {
  let lower = vec4<u32>(first, first + 1u, first + 2u, first + 3u) < vec4<u32>(at);
  let yes = select(vec4<u32>(0u), vec4<u32>(1u), four >= select(vec4<u32>(key + 1u), vec4<u32>(key), lower));
  return (yes.x + yes.y) + (yes.z + yes.w);
}

// How many of run's 32 keys come before number at of them all.
fn before_in(run: u32, key: u32, at: u32) -> u32 {
  let i = run * 8u;
  return ((before(keys[i], i * 4u, key, at) + before(keys[i + 1u], i * 4u + 4u, key, at)) +
    (before(keys[i + 2u], i * 4u + 8u, key, at) + before(keys[i + 3u], i * 4u + 12u, key, at))) +
    ((before(keys[i + 4u], i * 4u + 16u, key, at) + before(keys[i + 5u], i * 4u + 20u, key, at)) +
    (before(keys[i + 6u], i * 4u + 24u, key, at) + before(keys[i + 7u], i * 4u + 28u, key, at)));
}

// Expert e is pick number place, if there are so many.
fn choose(t: u32, e: u32, place: u32) {
  if (place >= K) { return; }
  chosen[place] = e;
  won[place / 4u][place % 4u] = prob[e];
  picks[t * K + place] = e;
}

// The best K of each run take part in the second round, in the order of their runs and, within a run, of their ranks:
// among equals the first in that order has the lowest id.
fn first_round(t: u32, lid: u32) {
  for (var e = lid; e < E; e += W) {
    let key = keys[e / 4u][e % 4u];
    let place = before_in(e / 32u, key, e);
    if (RUNS == 1u) {
      choose(t, e, place);
    } else if (place < K) {
      let i = e / 32u * K + place;
      sent[i] = e;
      keys[RUNS * 8u + i / 4u][i % 4u] = key;
    }
  }
}

fn second_round(t: u32, lid: u32) {
  for (var i = lid; i < SENDS; i += W) {
    let at = RUNS * 32u + i;
    let key = keys[at / 4u][at % 4u];
    var place = 0u;
    for (var run = RUNS; run < RUNS + SECOND; run++) { place += before_in(run, key, at); }
    if (key > 0u) { choose(t, sent[i], place); }
  }
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let t = wg.x;
  scores_of(t, lid);
  if (GROUPS > 1u) { keep_groups(lid); }
  workgroupBarrier();
  first_round(t, lid);
  workgroupBarrier();
  if (RUNS > 1u) {
    second_round(t, lid);
    workgroupBarrier();
  }
  for (var k = lid; k < K; k += W) {
    var f = c.scale;
    if (NORM == 1u) {
      var sum = 0.0;
      for (var i = 0u; i < FOURS; i++) { sum = sum + won[i].x + won[i].y + won[i].z + won[i].w; }
      f = f / select(max(sum, 6.103515625e-5), sum, is_nan(sum));
    }
    pw[t * K + k] = weight_of(chosen[k], won[k / 4u][k % 4u] * f);
  }
}
