// Q4_1: y = d * q + m.
// Plane 0: one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: f16 d, f16 m a unit.

struct T_raw { q: vec4<u32>, dm: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g));
}

fn T_sum(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

// The low nibbles of w's four bytes: in an f16's mantissa below 0x6400
// they read as 1024 + q.
fn T_low(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x000f000fu) | 0x64006400u);
  let odd = unpack2x16float(((w >> 8u) & 0x000f000fu) | 0x64006400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(1024.0);
}

// The high nibbles, left where they are: below 0x5400 they read as 64 + q.
fn T_high(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x00f000f0u) | 0x54005400u);
  let odd = unpack2x16float(((w >> 8u) & 0x00f000f0u) | 0x54005400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(64.0);
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = w.q;
  let dm = unpack2x16float(w.dm);
  let m = vec4<f32>(dm.y);
  return array<vec4<f32>, 8>(
    dm.x * T_low(q.x) + m,
    dm.x * T_low(q.y) + m,
    dm.x * T_low(q.z) + m,
    dm.x * T_low(q.w) + m,
    dm.x * T_high(q.x) + m,
    dm.x * T_high(q.y) + m,
    dm.x * T_high(q.z) + m,
    dm.x * T_high(q.w) + m);
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = w.q;
  let dm = unpack2x16float(w.dm);
  var s = T_low(q.x) * x[0];
  s = fma(T_low(q.y), x[1], s);
  s = fma(T_low(q.z), x[2], s);
  s = fma(T_low(q.w), x[3], s);
  s = fma(T_high(q.x), x[4], s);
  s = fma(T_high(q.y), x[5], s);
  s = fma(T_high(q.z), x[6], s);
  s = fma(T_high(q.w), x[7], s);
  let sx = T_sum(((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])));
  return dm.x * T_sum(s) + dm.y * sx;
}
