// A chunk's attention on a GPU: QR = 64 query rows against 32 keys at a time. 32 dims of queries and keys pass through shared
// memory, each invocation sums the scores of 4 rows × 2 keys; four invocations share a row's softmax; then 64 dims of the
// values pass through, and each invocation sums 4 rows × 4 dims of them. Steps are written out as in lib/tile_shared.wgsl.
override W: u32 = 256u;
override QR: u32 = 64u;
override VALUES: u32 = 4u; // VD / 16, rounded up to a multiple of 4; VD is at most 512
const KB: u32 = 32u;
var<workgroup> rows: array<array<vec4<f32>, 17>, 32>;    // queries [dim][row / 4], then values [key][dim / 4]
var<workgroup> keys: array<array<vec2<f32>, 17>, 32>;    // [dim][key / 2]
var<workgroup> weights: array<array<vec4<f32>, 17>, 32>; // scores, then exp(score - m): [key][row / 4]
var<workgroup> quarter: array<vec4<f32>, 64>;            // by row: what its four invocations found
var<workgroup> rescale: array<vec4<f32>, 16>;            // by row / 4: exp(old m - m)
var<private> acc: array<vec4<f32>, VALUES>;              // by dim, a component per row
var<private> score: array<vec4<f32>, 2>;                 // by key, a component per row
var<private> tm: u32;                                    // the invocation's rows start at 4 · tm,
var<private> tn: u32;                                    // its keys at 2 · tn, its dims at 4 · tn of 64

fn dim(k: u32) {
  let a = rows[k][tm];
  let b = keys[k][tn];
  score[0] = fma(a, vec4<f32>(b.x), score[0]);
  score[1] = fma(a, vec4<f32>(b.y), score[1]);
}

fn dims8(k: u32) {
  dim(k); dim(k + 1u); dim(k + 2u); dim(k + 3u); dim(k + 4u); dim(k + 5u); dim(k + 6u); dim(k + 7u);
}

fn key(e: u32, k: u32) {
  let a = weights[k][tm];
  let b = rows[k][tn];
  acc[4u * e] = fma(a, vec4<f32>(b.x), acc[4u * e]);
  acc[4u * e + 1u] = fma(a, vec4<f32>(b.y), acc[4u * e + 1u]);
  acc[4u * e + 2u] = fma(a, vec4<f32>(b.z), acc[4u * e + 2u]);
  acc[4u * e + 3u] = fma(a, vec4<f32>(b.w), acc[4u * e + 3u]);
}

fn keys8(e: u32, k: u32) {
  key(e, k); key(e, k + 1u); key(e, k + 2u); key(e, k + 3u); key(e, k + 4u); key(e, k + 5u); key(e, k + 6u); key(e, k + 7u);
}

// Part i mod 8 of query row i / 8, at dims 32 d: zeros past the head's end.
fn share_query(wg: vec3<u32>, i: u32, d: u32) {
  let part = d * 8u + i % 8u;
  var v = vec4<f32>(0.0);
  if (part < HD / 4u) { v = q[query_at(min(wg.y * QR + i / 8u, last_row()), wg.x) + part]; }
  let k = i % 8u * 4u;
  let r = i / 8u;
  rows[k][r / 4u][r % 4u] = v.x;
  rows[k + 1u][r / 4u][r % 4u] = v.y;
  rows[k + 2u][r / 4u][r % 4u] = v.z;
  rows[k + 3u][r / 4u][r % 4u] = v.w;
}

// Pair i mod 16 of key i / 16 from position b, at dims 32 d. Keys past end read the last one's: no row sees them.
fn share_key(wg: vec3<u32>, i: u32, d: u32, b: u32, end: u32) {
  let pair = d * 16u + i % 16u;
  var v = vec2<f32>(0.0);
  if (pair < HD / 2u) { v = kv_unpack(kc[key_at(min(b + i / 16u, end - 1u), wg.x) + pair]); }
  let k = i % 16u * 2u;
  let j = i / 16u;
  keys[k][j / 2u][j % 2u] = v.x;
  keys[k + 1u][j / 2u][j % 2u] = v.y;
}

// Pair i mod 32 of the value of key i / 32, at dims 64 e.
fn share_value(wg: vec3<u32>, i: u32, e: u32, b: u32, end: u32) {
  let pair = e * 32u + i % 32u;
  var v = vec2<f32>(0.0);
  if (pair < VD / 2u) { v = kv_unpack(vc[value_at(min(b + i / 32u, end - 1u), wg.x) + pair]); }
  let p = i % 32u;
  rows[i / 32u][p / 2u][p % 2u * 2u] = v.x;
  rows[i / 32u][p / 2u][p % 2u * 2u + 1u] = v.y;
}

// acc of the dims from 64 e, with the weights of the keys from position b.
fn values(wg: vec3<u32>, lid: u32, e: u32, b: u32, end: u32) {
  workgroupBarrier(); // rows was read before
  share_value(wg, lid, e, b, end);
  share_value(wg, lid + W, e, b, end);
  share_value(wg, lid + 2u * W, e, b, end);
  share_value(wg, lid + 3u * W, e, b, end);
  workgroupBarrier();
  let f = rescale[tm];
  acc[4u * e] *= f;
  acc[4u * e + 1u] *= f;
  acc[4u * e + 2u] *= f;
  acc[4u * e + 3u] *= f;
  keys8(e, 0u); keys8(e, 8u); keys8(e, 16u); keys8(e, 24u);
}

// The scores of the keys from position b, for row r only those it sees.
fn scores(wg: vec3<u32>, lid: u32, b: u32, end: u32) {
  score[0] = vec4<f32>(0.0);
  score[1] = vec4<f32>(0.0);
  for (var d = 0u; d < (HD + 31u) / 32u; d++) {
    workgroupBarrier();
    share_query(wg, lid, d);
    share_query(wg, lid + W, d);
    share_key(wg, lid, d, b, end);
    share_key(wg, lid + W, d, b, end);
    workgroupBarrier();
    dims8(0u); dims8(8u); dims8(16u); dims8(24u);
  }
  let r = vec4<u32>(wg.y * QR + 4u * tm) + vec4<u32>(0u, 1u, 2u, 3u);
  let low = vec4<u32>(oldest(r.x), oldest(r.y), oldest(r.z), oldest(r.w));
  let high = vec4<u32>(newest(r.x), newest(r.y), newest(r.z), newest(r.w));
  let pos = vec4<u32>(b + 2u * tn);
  let next = pos + vec4<u32>(1u);
  weights[2u * tn][tm] = select(vec4<f32>(NONE), score[0] * c.scale, (low <= pos) & (pos <= high));
  weights[2u * tn + 1u][tm] = select(vec4<f32>(NONE), score[1] * c.scale, (low <= next) & (next <= high));
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  tm = lid % 16u;
  tn = lid / 16u;
  let own = lid / 4u; // the row whose softmax this invocation shares, for the keys from 8 · (lid mod 4)
  let k0 = lid % 4u * 8u;
  var m = NONE;
  var sum = 0.0;
  let range = positions(wg);
  for (var b = range.x; b < range.y; b += KB) {
    scores(wg, lid, b, range.y);
    workgroupBarrier();
    var top = m;
    for (var j = 0u; j < 8u; j++) { top = max(top, weights[k0 + j][own / 4u][own % 4u]); }
    quarter[own][lid % 4u] = top;
    workgroupBarrier();
    let all = quarter[own];
    top = max(max(all.x, all.y), max(all.z, all.w));
    let old = exp(m - top);
    m = top;
    sum *= old;
    for (var j = 0u; j < 8u; j++) {
      let v = weights[k0 + j][own / 4u][own % 4u];
      let p = select(exp(v - top), 0.0, v == NONE);
      weights[k0 + j][own / 4u][own % 4u] = p;
      sum += p;
    }
    if (lid % 4u == 0u) { rescale[own / 4u][own % 4u] = old; }
    values(wg, lid, 0u, b, range.y);
    if (VD > 64u) { values(wg, lid, 1u, b, range.y); }
    if (VD > 128u) { values(wg, lid, 2u, b, range.y); }
    if (VD > 192u) { values(wg, lid, 3u, b, range.y); }
    if (VD > 256u) { values(wg, lid, 4u, b, range.y); }
    if (VD > 320u) { values(wg, lid, 5u, b, range.y); }
    if (VD > 384u) { values(wg, lid, 6u, b, range.y); }
    if (VD > 448u) { values(wg, lid, 7u, b, range.y); }
  }
  workgroupBarrier();
  quarter[own][lid % 4u] = sum;
  workgroupBarrier();
  if (lid % 4u == 0u && wg.y * QR + own <= last_row()) {
    let all = quarter[own];
    part[part_at(wg.z, wg.y * QR + own, wg.x)] = vec2<f32>(m, (all.x + all.y) + (all.z + all.w));
  }
  for (var i = 0u; i < 4u; i++) {
    let r = wg.y * QR + 4u * tm + i;
    if (r <= last_row()) {
      let o = part_at(wg.z, r, wg.x) + 1u;
      put_values(o, 0u, i);
      if (VD > 64u) { put_values(o, 1u, i); }
      if (VD > 128u) { put_values(o, 2u, i); }
      if (VD > 192u) { put_values(o, 3u, i); }
      if (VD > 256u) { put_values(o, 4u, i); }
      if (VD > 320u) { put_values(o, 5u, i); }
      if (VD > 384u) { put_values(o, 6u, i); }
      if (VD > 448u) { put_values(o, 7u, i); }
    }
  }
}

// Writes the invocation's dims from 64 e of its row i.
fn put_values(o: u32, e: u32, i: u32) {
  let d = 64u * e + 4u * tn;
  if (d < VD) {
    part[o + d / 2u] = vec2<f32>(acc[4u * e][i], acc[4u * e + 1u][i]);
    part[o + d / 2u + 1u] = vec2<f32>(acc[4u * e + 2u][i], acc[4u * e + 3u][i]);
  }
}
