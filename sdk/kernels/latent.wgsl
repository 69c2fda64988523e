// Multi-head latent attention before its products: from rows of q heads [nope | ROT] and of [c | k_pe], RoPE on each head's last
// ROT values and on k_pe, which pairs dims (2i, 2i + 1), and an RMS norm on c. The turned part of q goes to the end of each
// head's query, whose first RANK values the key matrix of the head makes (matvec_heads); [c | k_pe] to the cache row of the position.
// q is [rows][q_stride], kv [rows][kv_stride], rope [rows][cos ROT/2 | sin ROT/2], query [rows][heads · (RANK + ROT)], cache
// [position][RANK + ROT]. Grid: heads + 1, T; the last group of a token has the latent.
struct Constants { heads: u32, q_stride: u32, nope: u32, kv_stride: u32, eps: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
override RANK: u32 = 512u;
override ROT: u32 = 64u;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> kv: array<f32>;
@group(0) @binding(3) var<storage, read> norm: array<f32>;
@group(0) @binding(4) var<storage, read> rope: array<f32>;
@group(0) @binding(5) var<storage, read_write> query: array<f32>;
@group(0) @binding(6) var<storage, read_write> cache: array<f32>;
//!include lib/sum.wgsl

// Pair p, (a, b), turned by the angles of activation row r.
fn turned(r: u32, p: u32, a: f32, b: f32) -> vec2<f32> {
  let co = rope[r * ROT + p];
  let si = rope[r * ROT + ROT / 2u + p];
  return vec2<f32>(a * co - b * si, a * si + b * co);
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let h = wg.x;
  let r = step.row0 + wg.y;
  if (h < c.heads) {
    let src = r * c.q_stride + h * (c.nope + ROT) + c.nope;
    let dst = (r * c.heads + h) * (RANK + ROT) + RANK;
    for (var p = lid; p < ROT / 2u; p += W) {
      let v = turned(r, p, q[src + 2u * p], q[src + 2u * p + 1u]);
      query[dst + 2u * p] = v.x;
      query[dst + 2u * p + 1u] = v.y;
    }
    return;
  }
  let src = r * c.kv_stride;
  let dst = (step.pos0 + wg.y) * (RANK + ROT);
  var s = 0.0;
  for (var i = lid; i < RANK; i += W) { s += kv[src + i] * kv[src + i]; }
  let scale = 1.0 / sqrt(sum_all(lid, s) / f32(RANK) + c.eps);
  for (var i = lid; i < RANK; i += W) { cache[dst + i] = kv[src + i] * scale * norm[i]; }
  for (var p = lid; p < ROT / 2u; p += W) {
    let v = turned(r, p, kv[src + RANK + 2u * p], kv[src + RANK + 2u * p + 1u]);
    cache[dst + RANK + 2u * p] = v.x;
    cache[dst + RANK + 2u * p + 1u] = v.y;
  }
}
