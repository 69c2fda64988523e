// The gated delta rule, token by token in order. Value head h with key head h mod key_heads keeps a matrix S of D × D (row: key
// dim) and, with q̂, k̂ of length 1 (q / max(‖q‖, eps)) and beta a sigmoid:
//   S ← decay ⊙ S;  δ = beta · (v - Sᵀk̂);  S ← S + k̂ ⊗ δ;  o = Sᵀq̂ / √D
// with a decay per head (lib/decay_head.wgsl) or per key dim (lib/decay_channel.wgsl). qkv is [rows][q key_heads · D | k
// key_heads · D | v heads · D], beta [rows][beta_stride] from beta_off, y [rows][heads · D], state [head][D/4][D] of four key
// dims. Grid: heads, D / (W / SPLIT): an invocation has one column of S in registers, which columns never exchange, or a SPLIT-th of it.
//
// TB tokens at a time: W / (2 · TB) invocations fetch a q or k into shared memory and sum its squares. The D / 4 steps over a
// column are written out (by eights, D ≤ 128), so that S stays in registers and a software device counts no loops for them.
struct Constants { heads: u32, key_heads: u32, beta_stride: u32, beta_off: u32, raw_stride: u32, raw_off: u32, lower: f32, eps: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
override D: u32 = 128u; // 32, 64, 96 or 128
override TB: u32 = 8u;
override W: u32 = 32u;  // a multiple of 2 · TB; W / SPLIT divides D
// How many invocations share a column: 1, or D / 32 with TB 1, so that each waits for 8 loads, not 32, which a GPU may do one after the other.
override SPLIT: u32 = 1u;
const COLUMNS: u32 = W / SPLIT;
const N4: u32 = D4 / SPLIT; // four key dims each, of an invocation
const D4: u32 = D / 4u;
const SPAN: u32 = D4 + 1u; // of a row in shared memory: the pad keeps rows in different banks
const ROWS: u32 = 2u * TB * SPAN;
@group(0) @binding(1) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> beta: array<f32>;
@group(0) @binding(3) var<storage, read> raw: array<f32>;
@group(0) @binding(4) var<storage, read> a: array<f32>;
@group(0) @binding(5) var<storage, read> dt: array<f32>;
@group(0) @binding(6) var<storage, read_write> state: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;
var<workgroup> rows: array<vec4<f32>, ROWS>; // TB q, then TB k, not normed
var<workgroup> squares: array<f32, W>;
var<workgroup> lengths: array<f32, W>;       // 1 / max(‖row‖, eps)
var<workgroup> betas: array<f32, TB>;
var<workgroup> shares: array<vec4<f32>, W>;  // of a column's Sᵀk, Sᵀq and k·q
var<private> s: array<vec4<f32>, N4>;        // the column
var<private> seen: vec4<f32>;                // Sᵀk
var<private> out: vec4<f32>;                 // Sᵀq
var<private> kq: vec4<f32>;                  // k·q, where a column is shared
var<private> first: u32;                     // the invocation's first key dims, by fours
//!choose decay head channel

// Four values of x's row r (of the step) in qkv, at key dim 4 · i of head h of part q or k.
fn qkv_row(r: u32) -> u32 { return (step.row0 + r) * (2u * c.key_heads + c.heads) * D4; }

fn value_at(r: u32, j: u32) -> f32 { return qkv[qkv_row(r) + 2u * c.key_heads * D4 + j / 4u][j % 4u]; }

// Brings q, k, beta and the decay of n tokens from t0 to shared memory.
fn share(lid: u32, t0: u32, n: u32, h: u32) {
  let team = min(16u, W / (2u * TB));
  let row = lid / team;
  let t = row % TB;
  var sum = 0.0;
  if (t < n && row < 2u * TB) {
    let at = qkv_row(t0 + t) + (row / TB * c.key_heads + h % c.key_heads) * D4;
    for (var i = lid % team; i < D4; i += team) {
      let v = qkv[at + i];
      rows[row * SPAN + i] = v;
      sum += dot(v, v);
    }
  }
  squares[lid] = sum;
  if (lid < n) {
    betas[lid] = 1.0 / (1.0 + exp(-beta[(step.row0 + t0 + lid) * c.beta_stride + c.beta_off + h]));
  }
  share_decays(lid, t0, n, h);
  workgroupBarrier();
  if (lid < 2u * TB) {
    sum = 0.0;
    for (var i = 0u; i < team; i++) { sum += squares[lid * team + i]; }
    lengths[lid] = 1.0 / max(sqrt(sum), c.eps);
  }
  workgroupBarrier();
}

fn fetch(i: u32, at: u32) { s[i] = state[at + i * D]; }
fn fetch8(i: u32, at: u32) {
  fetch(i, at); fetch(i + 1u, at); fetch(i + 2u, at); fetch(i + 3u, at);
  fetch(i + 4u, at); fetch(i + 5u, at); fetch(i + 6u, at); fetch(i + 7u, at);
}

fn keep(i: u32, at: u32) { state[at + i * D] = s[i]; }
fn keep8(i: u32, at: u32) {
  keep(i, at); keep(i + 1u, at); keep(i + 2u, at); keep(i + 3u, at);
  keep(i + 4u, at); keep(i + 5u, at); keep(i + 6u, at); keep(i + 7u, at);
}

// S ← decay ⊙ S and seen += Sᵀk for four key dims of token t.
fn recall(i: u32, t: u32) {
  let v = s[i] * decay(t, first + i);
  let k = rows[(TB + t) * SPAN + first + i];
  s[i] = v;
  seen = fma(v, k, seen);
  if (SPLIT > 1u) {
    let q = rows[t * SPAN + first + i];
    out = fma(v, q, out);
    kq = fma(k, q, kq);
  }
}
fn recall8(i: u32, t: u32) {
  recall(i, t); recall(i + 1u, t); recall(i + 2u, t); recall(i + 3u, t);
  recall(i + 4u, t); recall(i + 5u, t); recall(i + 6u, t); recall(i + 7u, t);
}

// S ← S + k · d and out += Sᵀq.
fn learn(i: u32, t: u32, d: vec4<f32>) {
  let v = fma(rows[(TB + t) * SPAN + first + i], d, s[i]);
  s[i] = v;
  if (SPLIT == 1u) { out = fma(v, rows[t * SPAN + i], out); }
}
fn learn8(i: u32, t: u32, d: vec4<f32>) {
  learn(i, t, d); learn(i + 1u, t, d); learn(i + 2u, t, d); learn(i + 3u, t, d);
  learn(i + 4u, t, d); learn(i + 5u, t, d); learn(i + 6u, t, d); learn(i + 7u, t, d);
}

// One token, the t-th in shared memory: o of this column.
fn walk(t: u32, v: f32) -> f32 {
  begin_decay(t);
  seen = vec4<f32>(0.0);
  recall8(0u, t);
  if (N4 > 8u) { recall8(8u, t); }
  if (N4 > 16u) { recall8(16u, t); }
  if (N4 > 24u) { recall8(24u, t); }
  let length = lengths[TB + t]; // k̂ = k · length
  let d = vec4<f32>(betas[t] * (v - (seen.x + seen.y + seen.z + seen.w) * length) * length);
  out = vec4<f32>(0.0);
  learn8(0u, t, d);
  if (N4 > 8u) { learn8(8u, t, d); }
  if (N4 > 16u) { learn8(16u, t, d); }
  if (N4 > 24u) { learn8(24u, t, d); }
  return (out.x + out.y + out.z + out.w) * lengths[t] / sqrt(f32(D));
}

// The same where invocations share a column, of which each has eight times four key dims: they meet once, for (S + k ⊗ δ)ᵀq is Sᵀq + δ · k·q.
fn walk_shared(lid: u32, t: u32, v: f32) -> f32 {
  begin_decay(t);
  seen = vec4<f32>(0.0);
  out = vec4<f32>(0.0);
  kq = vec4<f32>(0.0);
  recall8(0u, t);
  shares[lid] = vec4<f32>((seen.x + seen.y) + (seen.z + seen.w), (out.x + out.y) + (out.z + out.w), (kq.x + kq.y) + (kq.z + kq.w), 0.0);
  workgroupBarrier();
  var all = shares[lid % COLUMNS];
  if (SPLIT > 1u) { all += shares[lid % COLUMNS + COLUMNS]; }
  if (SPLIT > 2u) { all += shares[lid % COLUMNS + 2u * COLUMNS]; }
  if (SPLIT > 3u) { all += shares[lid % COLUMNS + 3u * COLUMNS]; }
  let length = lengths[TB + t];
  let d = betas[t] * (v - all.x * length) * length;
  learn8(0u, t, vec4<f32>(d));
  return (all.y + d * all.z) * lengths[t] / sqrt(f32(D));
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let h = wg.x;
  let j = wg.y * COLUMNS + lid % COLUMNS;
  first = lid / COLUMNS * N4;
  let at = (h * D4 + first) * D + j;
  fetch8(0u, at);
  if (N4 > 8u) { fetch8(8u, at); }
  if (N4 > 16u) { fetch8(16u, at); }
  if (N4 > 24u) { fetch8(24u, at); }
  var v = value_at(0u, h * D + j);
  for (var t0 = 0u; t0 < step.T; t0 += TB) {
    let n = min(TB, step.T - t0);
    share(lid, t0, n, h);
    for (var t = 0u; t < n; t++) {
      let next = value_at(min(t0 + t + 1u, step.T - 1u), h * D + j); // on its way while this token is computed
      if (SPLIT > 1u) {
        let o = walk_shared(lid, t, v);
        if (first == 0u) { y[((step.row0 + t0 + t) * c.heads + h) * D + j] = o; }
      } else {
        y[((step.row0 + t0 + t) * c.heads + h) * D + j] = walk(t, v);
      }
      v = next;
    }
    workgroupBarrier();
  }
  keep8(0u, at);
  if (N4 > 8u) { keep8(8u, at); }
  if (N4 > 16u) { keep8(16u, at); }
  if (N4 > 24u) { keep8(24u, at); }
}
