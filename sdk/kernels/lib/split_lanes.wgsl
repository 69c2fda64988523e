// A run on a GPU, made for short waits: HD / 8 lanes share a key and its value, eight of their columns each, so that
// what they read is consecutive; SLOTS such groups of lanes have B keys each at a time. All that a lane reads for them, B parts
// of keys, B of values and its part of the queries, is asked for before any of it is used. Each slot keeps a softmax of its own, which
// goes on from block to block of SLOTS · B = KEYS positions; the slots join at the run's end.
// Heads and keys are written out, so that all of it stays in registers. HD, VD and VROW are multiples of 8; G is at most 8, B at most 4.
override KL: u32 = 8u;     // HD / 8
override SLOTS: u32 = 16u; // W is KL · SLOTS
override B: u32 = 4u;      // KEYS / SLOTS
override SAME: u32 = 0u;   // 1: a value is the beginning of its key
override ROOM: u32 = 4096u; // at least SLOTS · B · G · (KL + 4) and 8 · (W + 4)
const ROW: u32 = KL + 4u;  // the pads keep rows in different banks
const ACROSS: u32 = W + 4u;
const SCORES: u32 = G * B; // of a slot
const QUARTERS: u32 = SLOTS * SCORES;
const STATS: u32 = SLOTS * G;
const QUERIES: u32 = 2u * G;
const LOW: f32 = -3.4e38;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> kc: array<kv_wide>;
@group(0) @binding(3) var<storage, read> vc: array<kv_wide>;
@group(0) @binding(4) var<storage, read_write> part: array<f32>;
var<workgroup> room: array<f32, ROOM>;                 // the lanes' parts of a slot's scores; at the end a head's values: [column mod 8][lane]
var<workgroup> quarters: array<vec4<f32>, QUARTERS>;   // scores, in four parts
var<workgroup> stats: array<vec2<f32>, STATS>;         // m and sum by slot and head
var<private> qs: array<vec4<f32>, QUERIES>;
var<private> ka: array<kv_wide, B>;
var<private> kb: array<kv_wide, B>;                    // their second halves, where eight values are two loads
var<private> va: array<kv_wide, B>;
var<private> vb: array<kv_wide, B>;
var<private> m: array<f32, G>;
var<private> sum: array<f32, G>;
var<private> acc: array<vec4<f32>, QUERIES>;
var<private> lane: u32; // of the slot
var<private> slot: u32;
var<private> base: u32; // the block's first position
var<private> end: u32;  // the first position past the run

fn begin(g: u32, at: u32) {
  qs[2u * g] = q[at + g * (HD / 4u)] * c.scale;
  qs[2u * g + 1u] = q[at + g * (HD / 4u) + 1u] * c.scale;
  m[g] = LOW;
  sum[g] = 0.0;
  acc[2u * g] = vec4<f32>(0.0);
  acc[2u * g + 1u] = vec4<f32>(0.0);
}

// Reads the lane's part of its n-th key and value: past the run's end the last one's, which is given no weight.
fn fetch(n: u32, kvh: u32) {
  let row = cache_at(min(base + n * SLOTS + slot, end - 1u), kvh);
  let k = (row * (HD / 8u) + lane) * KV_LOADS;
  ka[n] = kc[k];
  if (KV_LOADS > 1u) { kb[n] = kc[k + 1u]; }
  if (SAME == 0u) {
    let v = (row * (VROW / 8u) + min(lane, VD / 8u - 1u)) * KV_LOADS;
    va[n] = vc[v];
    if (KV_LOADS > 1u) { vb[n] = vc[v + 1u]; }
  }
}

fn dot_head(g: u32, n: u32, low: vec4<f32>, high: vec4<f32>) {
  room[((slot * B + n) * G + g) * ROW + lane] = dot(qs[2u * g], low) + dot(qs[2u * g + 1u], high);
}

fn dots(n: u32) {
  let low = kv_low(ka[n], kb[n]);
  let high = kv_high(ka[n], kb[n]);
  dot_head(0u, n, low, high);
  if (G > 1u) { dot_head(1u, n, low, high); }
  if (G > 2u) { dot_head(2u, n, low, high); }
  if (G > 3u) { dot_head(3u, n, low, high); }
  if (G > 4u) { dot_head(4u, n, low, high); }
  if (G > 5u) { dot_head(5u, n, low, high); }
  if (G > 6u) { dot_head(6u, n, low, high); }
  if (G > 7u) { dot_head(7u, n, low, high); }
}

// Part i of the lanes' parts of a score, nothing where there is none.
fn lanes_part(at: u32, i: u32) -> f32 {
  if (i >= KL) { return 0.0; }
  return room[at + i];
}

// Adds up the lanes' parts of the slot's scores, each by four lanes.
fn add_up() {
  for (var i = lane; i < 4u * SCORES; i += KL) {
    let at = (slot * SCORES + i / 4u) * ROW;
    var s = 0.0;
    for (var j = i % 4u; j < KL; j += 16u) {
      s += (lanes_part(at, j) + lanes_part(at, j + 4u)) + (lanes_part(at, j + 8u) + lanes_part(at, j + 12u));
    }
    quarters[slot * SCORES + i / 4u][i % 4u] = s;
  }
}

fn there(n: u32) -> bool { return n < B && base + n * SLOTS + slot < end; }

fn score(g: u32, n: u32) -> f32 {
  if (n >= B) { return LOW; }
  let v = quarters[slot * SCORES + n * G + g];
  return select(LOW, (v.x + v.y) + (v.z + v.w), there(n));
}

fn weigh(g: u32, n: u32, p: f32) {
  sum[g] += p;
  if (SAME == 1u) {
    acc[2u * g] += p * kv_low(ka[n], kb[n]);
    acc[2u * g + 1u] += p * kv_high(ka[n], kb[n]);
  } else {
    acc[2u * g] += p * kv_low(va[n], vb[n]);
    acc[2u * g + 1u] += p * kv_high(va[n], vb[n]);
  }
}

// Takes the block's keys into a head's softmax.
fn attend(g: u32) {
  let s0 = score(g, 0u);
  let s1 = score(g, 1u);
  let s2 = score(g, 2u);
  let s3 = score(g, 3u);
  let top = max(m[g], max(max(s0, s1), max(s2, s3)));
  let keep = exp(m[g] - top);
  m[g] = top;
  sum[g] *= keep;
  acc[2u * g] *= keep;
  acc[2u * g + 1u] *= keep;
  weigh(g, 0u, select(0.0, exp(s0 - top), there(0u)));
  if (B > 1u) { weigh(g, 1u, select(0.0, exp(s1 - top), there(1u))); }
  if (B > 2u) { weigh(g, 2u, select(0.0, exp(s2 - top), there(2u))); }
  if (B > 3u) { weigh(g, 3u, select(0.0, exp(s3 - top), there(3u))); }
}

// Joins the slots' values of a head, and writes them.
fn join(g: u32, lid: u32, at: u32) {
  var top = LOW;
  for (var s = 0u; s < SLOTS; s++) { top = max(top, stats[s * G + g].x); }
  let f = exp(m[g] - top);
  let low = acc[2u * g] * f;
  let high = acc[2u * g + 1u] * f;
  room[lid] = low.x;
  room[ACROSS + lid] = low.y;
  room[2u * ACROSS + lid] = low.z;
  room[3u * ACROSS + lid] = low.w;
  room[4u * ACROSS + lid] = high.x;
  room[5u * ACROSS + lid] = high.y;
  room[6u * ACROSS + lid] = high.z;
  room[7u * ACROSS + lid] = high.w;
  workgroupBarrier();
  for (var i = lid; i < VD; i += W) {
    var v = 0.0;
    for (var s = 0u; s < SLOTS; s++) { v += room[i % 8u * ACROSS + s * KL + i / 8u]; }
    part[at + g * (VD + 2u) + 2u + i] = v;
  }
  var total = 0.0;
  for (var s = 0u; s < SLOTS; s++) { total += stats[s * G + g].y * exp(stats[s * G + g].x - top); }
  if (lid == 0u) {
    part[at + g * (VD + 2u)] = top;
    part[at + g * (VD + 2u) + 1u] = total;
  }
  workgroupBarrier();
}

fn note(g: u32) {
  if (lane == 0u) { stats[slot * G + g] = vec2<f32>(m[g], sum[g]); }
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let kvh = wg.x / CUTS;
  let t = wg.z;
  let len = step.pos0 + t + 1u; // positions that this token sees, itself included
  var seen = len;
  if (c.window > 0u) { seen = min(seen, c.window); }
  let run = run_length(seen);
  let first = len - seen + wg.y * run;
  if (first >= len) { return; } // a run past this token's positions
  lane = lid % KL;
  slot = lid / KL;
  let heads = c.kv_heads * CUTS * G;
  let at = ((step.row0 + t) * heads + wg.x * G) * (HD / 4u) + 2u * lane;
  begin(0u, at);
  if (G > 1u) { begin(1u, at); }
  if (G > 2u) { begin(2u, at); }
  if (G > 3u) { begin(3u, at); }
  if (G > 4u) { begin(4u, at); }
  if (G > 5u) { begin(5u, at); }
  if (G > 6u) { begin(6u, at); }
  if (G > 7u) { begin(7u, at); }
  let stop = min(first + run, len);
  end = stop;
  for (var block = first; block < stop; block += KEYS) {
    base = block;
    //!each b B: fetch($bu, kvh);
    //!each b B: dots($bu);
    workgroupBarrier();
    add_up();
    workgroupBarrier();
    //!each g G: attend($gu);
  }
  //!each g G: note($gu);
  workgroupBarrier();
  let o = ((wg.y * step.T + t) * heads + wg.x * G) * (VD + 2u);
  //!each g G: join($gu, lid, o);
}
