// Q4_K: y = (d * sc) * q - dmin * m.
// Plane 0: one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: u8 sc, u8 m a unit (6 bits each).
// Plane 2: f16 d, f16 dmin a superblock of eight units.

struct T_raw { q: vec4<u32>, sc: u32, dm: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g >> 1u), T_word(p.z, g >> 3u));
}

//!include lib/u16.wgsl

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

// The unit's scale d * sc and minimum dmin * m, both exact in f32.
fn T_scale(w: T_raw, g: u32) -> vec2<f32> {
  let s = T_u16(w.sc, g);
  return unpack2x16float(w.dm) * vec2<f32>(vec2<u32>(s & 0xffu, (s >> 8u) & 0xffu));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = w.q;
  let s = T_scale(w, g);
  let m = vec4<f32>(s.y);
  return array<vec4<f32>, 8>(
    s.x * T_low(q.x) - m,
    s.x * T_low(q.y) - m,
    s.x * T_low(q.z) - m,
    s.x * T_low(q.w) - m,
    s.x * T_high(q.x) - m,
    s.x * T_high(q.y) - m,
    s.x * T_high(q.z) - m,
    s.x * T_high(q.w) - m);
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = w.q;
  let dm = T_scale(w, g);
  var s = T_low(q.x) * x[0];
  s = fma(T_low(q.y), x[1], s);
  s = fma(T_low(q.z), x[2], s);
  s = fma(T_low(q.w), x[3], s);
  s = fma(T_high(q.x), x[4], s);
  s = fma(T_high(q.y), x[5], s);
  s = fma(T_high(q.z), x[6], s);
  s = fma(T_high(q.w), x[7], s);
  let sx = T_sum(((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])));
  return dm.x * T_sum(s) - dm.y * sx;
}
