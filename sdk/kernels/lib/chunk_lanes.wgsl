// A chunk's attention on a software device: each of W lanes has four query rows, eight dims at a time are dotted with 32 keys,
// whose scores stay in a private array; the weighted values gather in part. See lib/tile_lanes.wgsl for why.
// Loops run at most RUN / 32 · ((HD + VD) / 8 · 34 + 68) times.
override W: u32 = 8u;
override QR: u32 = 32u; // 4 · W
const KB: u32 = 32u;

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let kvh = wg.x;
  let row = vec4<u32>(wg.y * QR + lid) + vec4<u32>(0u, W, 2u * W, 3u * W);
  let last = last_row();
  if (row.x > last) { return; }
  let r = min(row, vec4<u32>(last));
  let low = vec4<u32>(oldest(r.x), oldest(r.y), oldest(r.z), oldest(r.w));
  let high = vec4<u32>(newest(r.x), newest(r.y), newest(r.z), newest(r.w));
  let q_at = vec4<u32>(query_at(r.x, kvh), query_at(r.y, kvh), query_at(r.z, kvh), query_at(r.w, kvh));
  let o = vec4<u32>(part_at(wg.z, r.x, kvh), part_at(wg.z, r.y, kvh), part_at(wg.z, r.z, kvh), part_at(wg.z, r.w, kvh));
  let range = positions(wg);
  var m = vec4<f32>(NONE);
  var sum = vec4<f32>(0.0);
  var s: array<vec4<f32>, 32>; // by key, a component per row
  if (range.x >= range.y) {
    for (var i = 1u; i < VD / 2u + 1u; i++) { put4(row, o + vec4<u32>(i), vec4<f32>(0.0), vec4<f32>(0.0)); }
  }
  for (var b = range.x; b < range.y; b += KB) {
    let n = min(KB, range.y - b);
    for (var d = 0u; d < HD / 8u; d++) {
      let i = q_at + vec4<u32>(2u * d);
      let qa = mat4x4<f32>(q[i.x], q[i.y], q[i.z], q[i.w]);
      let qb = mat4x4<f32>(q[i.x + 1u], q[i.y + 1u], q[i.z + 1u], q[i.w + 1u]);
      for (var j = 0u; j < n; j++) {
        let k = key_at(b + j, kvh) + 4u * d;
        let t = vec4<f32>(kv_unpack(kc[k]), kv_unpack(kc[k + 1u])) * qa + vec4<f32>(kv_unpack(kc[k + 2u]), kv_unpack(kc[k + 3u])) * qb;
        s[j] = select(s[j], vec4<f32>(0.0), d == 0u) + t;
      }
    }
    var top = m;
    for (var j = 0u; j < n; j++) {
      let pos = vec4<u32>(b + j);
      let v = select(vec4<f32>(NONE), s[j] * c.scale, (low <= pos) & (pos <= high));
      s[j] = v;
      top = max(top, v);
    }
    let old = exp(m - top);
    m = top;
    sum *= old;
    for (var j = 0u; j < n; j++) {
      let p = select(exp(s[j] - top), vec4<f32>(0.0), s[j] == vec4<f32>(NONE));
      s[j] = p;
      sum += p;
    }
    for (var d = 0u; d < VD / 8u; d++) {
      let i = o + vec4<u32>(1u + 4u * d);
      var v0 = vec4<f32>(0.0); // dims 8 d to 8 d + 7, a component per row
      var v1 = vec4<f32>(0.0);
      var v2 = vec4<f32>(0.0);
      var v3 = vec4<f32>(0.0);
      var v4 = vec4<f32>(0.0);
      var v5 = vec4<f32>(0.0);
      var v6 = vec4<f32>(0.0);
      var v7 = vec4<f32>(0.0);
      for (var j = 0u; j < n; j++) {
        let k = value_at(b + j, kvh) + 4u * d;
        let a = vec4<f32>(kv_unpack(vc[k]), kv_unpack(vc[k + 1u]));
        let e = vec4<f32>(kv_unpack(vc[k + 2u]), kv_unpack(vc[k + 3u]));
        let p = s[j];
        v0 += p * a.x;
        v1 += p * a.y;
        v2 += p * a.z;
        v3 += p * a.w;
        v4 += p * e.x;
        v5 += p * e.y;
        v6 += p * e.z;
        v7 += p * e.w;
      }
      let more = b > range.x;
      add4(row, i, more, old, v0, v1);
      add4(row, i + vec4<u32>(1u), more, old, v2, v3);
      add4(row, i + vec4<u32>(2u), more, old, v4, v5);
      add4(row, i + vec4<u32>(3u), more, old, v6, v7);
    }
  }
  put4(row, o, m, sum);
}

// Writes a pair of values of each of the four rows that exist.
fn put4(row: vec4<u32>, i: vec4<u32>, a: vec4<f32>, b: vec4<f32>) {
  let last = last_row();
  part[i.x] = vec2<f32>(a.x, b.x);
  if (row.y <= last) { part[i.y] = vec2<f32>(a.y, b.y); }
  if (row.z <= last) { part[i.z] = vec2<f32>(a.z, b.z); }
  if (row.w <= last) { part[i.w] = vec2<f32>(a.w, b.w); }
}

// The same on top of what is there, times old.
fn add4(row: vec4<u32>, i: vec4<u32>, more: bool, old: vec4<f32>, a: vec4<f32>, b: vec4<f32>) {
  var x = a;
  var y = b;
  if (more) {
    let w = transpose(mat4x2<f32>(part[i.x], part[i.y], part[i.z], part[i.w]));
    x += old * w[0];
    y += old * w[1];
  }
  put4(row, i, x, y);
}
