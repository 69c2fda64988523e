// Splits a row of q | k | v into heads: RMS norm of each q and k head (of v too where VNORM is 1, without a weight), RoPE on
// the first ROT dims, q to its own buffer, k and v to the cache row of the token's position.
// qkv is [rows][stride], q heads at q_off + h · q_step, k at k_off, v at v_off; rope [rows][cos ROT/2 | sin ROT/2];
// q [rows][heads · HD]; kc, vc [position or ring row][kv_heads · HD]. NEOX 1 pairs dims (i, i + ROT/2), 0 pairs (2i, 2i + 1).
// Grid: heads + 2 · kv_heads, T.
struct Constants { stride: u32, q_off: u32, q_step: u32, k_off: u32, v_off: u32, heads: u32, kv_heads: u32, window: u32, eps: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
//!choose kv f16 f32
override HD: u32 = 64u;
override ROT: u32 = 64u;
override NEOX: u32 = 1u;
override VNORM: u32 = 0u;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
@group(0) @binding(2) var<storage, read> q_norm: array<f32>;
@group(0) @binding(3) var<storage, read> k_norm: array<f32>;
@group(0) @binding(4) var<storage, read> rope: array<f32>;
@group(0) @binding(5) var<storage, read_write> q: array<f32>;
@group(0) @binding(6) var<storage, read_write> kc: array<kv2>;
@group(0) @binding(7) var<storage, read_write> vc: array<kv2>;
var<workgroup> head: array<f32, HD>;
//!include lib/sum.wgsl

// The dims of pair p: those past ROT, which don't turn, go by twos.
fn first_of(p: u32) -> u32 { return select(2u * p, p, NEOX == 1u && p < ROT / 2u); }
fn second_of(p: u32) -> u32 { return select(2u * p + 1u, p + ROT / 2u, NEOX == 1u && p < ROT / 2u); }

// What pair p of head h is multiplied by: the norm's weights of its dims, and cos and sin of activation row r.
fn factors_of(p: u32, h: u32, r: u32) -> vec4<f32> {
  var f = vec4<f32>(1.0, 1.0, 1.0, 0.0);
  if (p >= HD / 2u || h >= c.heads + c.kv_heads) { return f; }
  let i = first_of(p);
  let j = second_of(p);
  if (h < c.heads) { f = vec4<f32>(q_norm[i], q_norm[j], 1.0, 0.0); }
  else { f = vec4<f32>(k_norm[i], k_norm[j], 1.0, 0.0); }
  if (p < ROT / 2u) { f = vec4<f32>(f.x, f.y, rope[r * ROT + p], rope[r * ROT + ROT / 2u + p]); }
  return f;
}

// Norms and turns pair p, which lies in shared memory: a query's goes to row q_row of q, others stay there.
fn finish(p: u32, h: u32, q_row: u32, scale: f32, f: vec4<f32>) {
  if (p >= HD / 2u) { return; }
  let i = first_of(p);
  let j = second_of(p);
  let a = head[i] * scale * f.x;
  let b = head[j] * scale * f.y;
  var turned = vec2<f32>(a, b);
  if (p < ROT / 2u && h < c.heads + c.kv_heads) { turned = vec2<f32>(a * f.z - b * f.w, a * f.w + b * f.z); }
  if (h < c.heads) {
    q[q_row * HD + i] = turned.x;
    q[q_row * HD + j] = turned.y;
  } else {
    head[i] = turned.x;
    head[j] = turned.y;
  }
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let h = wg.x;
  let r = step.row0 + wg.y;
  let is_q = h < c.heads;
  let is_v = h >= c.heads + c.kv_heads;
  let kvh = (h - c.heads) % c.kv_heads;
  var at = r * c.stride + c.q_off + h * c.q_step;
  if (!is_q) { at = r * c.stride + select(c.k_off, c.v_off, is_v) + kvh * HD; }
  let own = factors_of(lid, h, r); // on its way while the squares are summed
  var s = 0.0;
  for (var p = lid; p < HD / 2u; p += W) {
    let a = qkv[at + first_of(p)];
    let b = qkv[at + second_of(p)];
    s += a * a + b * b;
    head[first_of(p)] = a;
    head[second_of(p)] = b;
  }
  var scale = 1.0 / sqrt(sum_all(lid, s) / f32(HD) + c.eps);
  if (is_v && VNORM == 0u) { scale = 1.0; }
  let q_row = r * c.heads + h;
  finish(lid, h, q_row, scale, own);
  for (var p = lid + W; p < HD / 2u; p += W) { finish(p, h, q_row, scale, factors_of(p, h, r)); }
  if (is_q) { return; }
  workgroupBarrier();
  var row = step.pos0 + wg.y;
  if (c.window > 0u) { row = row % (c.window + step.chunk); }
  for (var i = lid; i < HD / 2u; i += W) {
    let v = kv_pack(vec2<f32>(head[2u * i], head[2u * i + 1u]));
    let j = (row * c.kv_heads + kvh) * (HD / 2u) + i;
    if (is_v) { vc[j] = v; } else { kc[j] = v; }
  }
}
