// Causal attention of a chunk over a run of cached positions: for each query t < T (position pos0 + t) and head the greatest
// score m, the sum of exp(score - m), and the values weighted so; m = -3e38 and zeros where the run has no key that the query
// sees. attn_merge joins the runs. Scores never leave the workgroup: their softmax runs along with the keys.
// A query sees the last window positions up to its own (all where window is 0). The queries of a KV head are the rows
// t · G + g; one workgroup has QR of them and the run's RUN positions, counted from 0 or, with a window, from the first that
// any of its rows sees: at most window + ceil((QR - 1) / G) positions.
// q is [rows][kv_heads · G · HD]; kc [row][kv_heads · HD]; vc [row][kv_heads · VROW], a value being the first VD of VROW (so that
// a value may be a part of its key, in one cache); part [run][t][head][VD + 2]: m, sum, values. HD and VD are multiples of 8.
// Grid: kv_heads, ceil(T · G / QR), ceil(positions / RUN).
struct Constants { kv_heads: u32, window: u32, scale: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
//!choose kv f16 f32
override HD: u32 = 64u;
override VD: u32 = 64u;
override VROW: u32 = 64u;
override G: u32 = 4u;
override RUN: u32 = 1024u; // a multiple of the 32 keys that are looked at together
@group(0) @binding(2) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> kc: array<kv2>;
@group(0) @binding(4) var<storage, read> vc: array<kv2>;
@group(0) @binding(5) var<storage, read_write> part: array<vec2<f32>>;
const NONE: f32 = -3.0e38;

// Where the caches hold position pos of this KV head: a key or value begins at that · (HD or VROW).
fn cache_at(pos: u32, kvh: u32) -> u32 {
  var row = pos;
  if (c.window > 0u) { row = pos % (c.window + step.chunk); }
  return row * c.kv_heads + kvh;
}
// The same for its key and its value, in pairs of elements.
fn key_at(pos: u32, kvh: u32) -> u32 { return cache_at(pos, kvh) * (HD / 2u); }
fn value_at(pos: u32, kvh: u32) -> u32 { return cache_at(pos, kvh) * (VROW / 2u); }

// The last of the KV head's query rows.
fn last_row() -> u32 { return step.T * G - 1u; }
// The newest and the oldest position that row r sees.
fn newest(r: u32) -> u32 { return step.pos0 + r / G; }
fn oldest(r: u32) -> u32 {
  let past = newest(r) + 1u;
  return select(0u, past - min(past, c.window), c.window > 0u);
}
// Where row r's query starts, in vec4s, and its partial result, in pairs.
fn query_at(r: u32, kvh: u32) -> u32 { return (((step.row0 + r / G) * c.kv_heads + kvh) * G + r % G) * (HD / 4u); }
fn part_at(run: u32, r: u32, kvh: u32) -> u32 { return (((run * step.T + r / G) * c.kv_heads + kvh) * G + r % G) * (VD / 2u + 1u); }

// The positions of a workgroup: first, and one past the last.
fn positions(wg: vec3<u32>) -> vec2<u32> {
  let begin = oldest(wg.y * QR) + wg.z * RUN;
  return vec2<u32>(begin, min(begin + RUN, newest(min(wg.y * QR + QR - 1u, last_row())) + 1u));
}
//!choose chunk lanes shared
