// A run on a software device, and where sizes are odd: an invocation has whole keys, then pairs of the values' columns. A run
// has KEYS positions.
override LS: u32 = 1u; // lanes that share a head's scores; W is a multiple
override GHD: u32 = 256u;   // G · HD
override GKEYS: u32 = 512u; // G · KEYS
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> kc: array<kv2>;
@group(0) @binding(3) var<storage, read> vc: array<kv2>;
@group(0) @binding(4) var<storage, read_write> part: array<f32>;
var<workgroup> qs: array<f32, GHD>;
var<workgroup> scores: array<f32, GKEYS>;
var<workgroup> lanes: array<f32, W>;

// Turns the scores of each head into exp(score - m), and writes m and their sum. LS lanes share a head.
fn soften(lid: u32, keys: u32, row: u32) {
  for (var first = 0u; first < G; first += W / LS) {
    let g = first + lid / LS;
    let lane = lid % LS;
    var m = -3.4e38;
    if (g < G) { for (var j = lane; j < keys; j += LS) { m = max(m, scores[g * KEYS + j]); } }
    lanes[lid] = m;
    workgroupBarrier();
    for (var i = 0u; i < LS; i++) { m = max(m, lanes[lid / LS * LS + i]); }
    workgroupBarrier();
    var sum = 0.0;
    if (g < G) {
      for (var j = lane; j < keys; j += LS) {
        let p = exp(scores[g * KEYS + j] - m);
        scores[g * KEYS + j] = p;
        sum += p;
      }
    }
    lanes[lid] = sum;
    workgroupBarrier();
    sum = 0.0;
    for (var i = 0u; i < LS; i++) { sum += lanes[lid / LS * LS + i]; }
    workgroupBarrier();
    if (g < G && lane == 0u) {
      part[(row + g) * (VD + 2u)] = m;
      part[(row + g) * (VD + 2u) + 1u] = sum;
    }
  }
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let kvh = wg.x / CUTS;
  let head0 = wg.x * G; // the workgroup's first query head
  let t = wg.z;
  let len = step.pos0 + t + 1u; // positions that this token sees, itself included
  var seen = len;
  if (c.window > 0u) { seen = min(seen, c.window); }
  let first = len - seen + wg.y * KEYS;
  if (first >= len) { return; } // a run past this token's positions
  let keys = min(KEYS, len - first);
  let heads = c.kv_heads * CUTS * G;
  for (var i = lid; i < GHD; i += W) { qs[i] = q[((step.row0 + t) * heads + head0) * HD + i] * c.scale; }
  workgroupBarrier();
  for (var j = lid; j < keys; j += W) {
    let at = cache_at(first + j, kvh) * (HD / 2u);
    var s: array<f32, G>;
    for (var g = 0u; g < G; g++) { s[g] = 0.0; }
    var i = 0u;
    for (; i + 4u <= HD / 2u; i += 4u) { // four loads at once: one after the other would wait for memory each time
      let a = kv_unpack(kc[at + i]);
      let b = kv_unpack(kc[at + i + 1u]);
      let d = kv_unpack(kc[at + i + 2u]);
      let e = kv_unpack(kc[at + i + 3u]);
      for (var g = 0u; g < G; g++) {
        let o = g * HD + 2u * i;
        s[g] += (qs[o] * a.x + qs[o + 1u] * a.y + qs[o + 2u] * b.x + qs[o + 3u] * b.y) +
          (qs[o + 4u] * d.x + qs[o + 5u] * d.y + qs[o + 6u] * e.x + qs[o + 7u] * e.y);
      }
    }
    for (; i < HD / 2u; i++) {
      let k = kv_unpack(kc[at + i]);
      for (var g = 0u; g < G; g++) { s[g] += qs[g * HD + 2u * i] * k.x + qs[g * HD + 2u * i + 1u] * k.y; }
    }
    for (var g = 0u; g < G; g++) { scores[g * KEYS + j] = s[g]; }
  }
  workgroupBarrier();
  soften(lid, keys, (wg.y * step.T + t) * heads + head0);
  workgroupBarrier();
  for (var i = lid; i < VD / 2u; i += W) {
    var acc: array<vec2<f32>, G>;
    for (var g = 0u; g < G; g++) { acc[g] = vec2<f32>(0.0); }
    var j = 0u;
    for (; j + 4u <= keys; j += 4u) {
      let a = kv_unpack(vc[cache_at(first + j, kvh) * (VROW / 2u) + i]);
      let b = kv_unpack(vc[cache_at(first + j + 1u, kvh) * (VROW / 2u) + i]);
      let d = kv_unpack(vc[cache_at(first + j + 2u, kvh) * (VROW / 2u) + i]);
      let e = kv_unpack(vc[cache_at(first + j + 3u, kvh) * (VROW / 2u) + i]);
      for (var g = 0u; g < G; g++) {
        let o = g * KEYS + j;
        acc[g] += (scores[o] * a + scores[o + 1u] * b) + (scores[o + 2u] * d + scores[o + 3u] * e);
      }
    }
    for (; j < keys; j++) {
      let v = kv_unpack(vc[cache_at(first + j, kvh) * (VROW / 2u) + i]);
      for (var g = 0u; g < G; g++) { acc[g] += scores[g * KEYS + j] * v; }
    }
    for (var g = 0u; g < G; g++) {
      let o = ((wg.y * step.T + t) * heads + head0 + g) * (VD + 2u) + 2u + 2u * i;
      part[o] = acc[g].x;
      part[o + 1u] = acc[g].y;
    }
  }
}
