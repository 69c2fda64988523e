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

// 1 / rms of the head that lies in shared memory.
fn head_scale(lid: u32) -> f32 {
  var s = 0.0;
  for (var i = lid; i < HD; i += W) { s += head[i] * head[i]; }
  return 1.0 / sqrt(sum_all(lid, s) / f32(HD) + c.eps);
}

// Turns the pairs of the head in shared memory by the angles of activation row r.
fn turn(lid: u32, r: u32) {
  for (var p = lid; p < ROT / 2u; p += W) {
    let i = select(2u * p, p, NEOX == 1u);
    let j = select(2u * p + 1u, p + ROT / 2u, NEOX == 1u);
    let co = rope[r * ROT + p];
    let si = rope[r * ROT + ROT / 2u + p];
    let a = head[i];
    let b = head[j];
    head[i] = a * co - b * si;
    head[j] = a * si + b * co;
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
  for (var i = lid; i < HD; i += W) { head[i] = qkv[at + i]; }
  workgroupBarrier();
  let scale = head_scale(lid);
  for (var i = lid; i < HD; i += W) {
    if (is_q) { head[i] = head[i] * scale * q_norm[i]; }
    else if (!is_v) { head[i] = head[i] * scale * k_norm[i]; }
    else if (VNORM == 1u) { head[i] = head[i] * scale; }
  }
  workgroupBarrier();
  if (!is_v) { turn(lid, r); }
  workgroupBarrier();
  if (is_q) {
    for (var i = lid; i < HD; i += W) { q[(r * c.heads + h) * HD + i] = head[i]; }
    return;
  }
  var row = step.pos0 + wg.y;
  if (c.window > 0u) { row = row % (c.window + step.chunk); }
  for (var i = lid; i < HD / 2u; i += W) {
    let v = kv_pack(vec2<f32>(head[2u * i], head[2u * i + 1u]));
    let j = (row * c.kv_heads + kvh) * (HD / 2u) + i;
    if (is_v) { vc[j] = v; } else { kc[j] = v; }
  }
}
