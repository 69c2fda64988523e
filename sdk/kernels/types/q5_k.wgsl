// Q5_K: y = (d * sc) * q - dmin * m.
// Plane 0: low four bits, one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: fifth bits, one word a unit: value j is bit j/4 of byte j%4.
// Plane 2: u8 sc, u8 m a unit (6 bits each).
// Plane 3: f16 d, f16 dmin a superblock of eight units.

struct T_raw { q: vec4<u32>, h: u32, sc: u32, dm: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g), T_word(p.z, g >> 1u), T_word(p.w, g >> 3u));
}

//!include lib/u16.wgsl

fn T_sum(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

// The four bytes of w: in an f16's mantissa below 0x6400 they read
// as 1024 + q.
fn T_bytes(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x00ff00ffu) | 0x64006400u);
  let odd = unpack2x16float(((w >> 8u) & 0x00ff00ffu) | 0x64006400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(1024.0);
}

// The 32 quants of unit g.
fn T_quants(w: T_raw) -> array<vec4<f32>, 8> {
  let q = w.q;
  let h = w.h;
  return array<vec4<f32>, 8>(
    T_bytes((q.x & 0x0f0f0f0fu) | ((h << 4u) & 0x10101010u)),
    T_bytes((q.y & 0x0f0f0f0fu) | ((h << 3u) & 0x10101010u)),
    T_bytes((q.z & 0x0f0f0f0fu) | ((h << 2u) & 0x10101010u)),
    T_bytes((q.w & 0x0f0f0f0fu) | ((h << 1u) & 0x10101010u)),
    T_bytes(((q.x >> 4u) & 0x0f0f0f0fu) | (h & 0x10101010u)),
    T_bytes(((q.y >> 4u) & 0x0f0f0f0fu) | ((h >> 1u) & 0x10101010u)),
    T_bytes(((q.z >> 4u) & 0x0f0f0f0fu) | ((h >> 2u) & 0x10101010u)),
    T_bytes(((q.w >> 4u) & 0x0f0f0f0fu) | ((h >> 3u) & 0x10101010u)));
}

// The unit's scale d * sc and minimum dmin * m, both exact in f32.
fn T_scale(w: T_raw, g: u32) -> vec2<f32> {
  let s = T_u16(w.sc, g);
  return unpack2x16float(w.dm) * vec2<f32>(vec2<u32>(s & 0xffu, (s >> 8u) & 0xffu));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = T_quants(w);
  let s = T_scale(w, g);
  let m = vec4<f32>(s.y);
  return array<vec4<f32>, 8>(
    s.x * q[0] - m,
    s.x * q[1] - m,
    s.x * q[2] - m,
    s.x * q[3] - m,
    s.x * q[4] - m,
    s.x * q[5] - m,
    s.x * q[6] - m,
    s.x * q[7] - m);
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = T_quants(w);
  let dm = T_scale(w, g);
  var s = q[0] * x[0];
  s = fma(q[1], x[1], s);
  s = fma(q[2], x[2], s);
  s = fma(q[3], x[3], s);
  s = fma(q[4], x[4], s);
  s = fma(q[5], x[5], s);
  s = fma(q[6], x[6], s);
  s = fma(q[7], x[7], s);
  let sx = T_sum(((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])));
  return dm.x * T_sum(s) - dm.y * sx;
}
