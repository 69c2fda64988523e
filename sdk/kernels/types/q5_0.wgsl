// Q5_0: y = d * (q - 16).
// Plane 0: low four bits, one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: fifth bits, one word a unit: value j is bit j/4 of byte j%4.
// Plane 2: f16 d a unit.

struct T_raw { q: vec4<u32>, h: u32, d: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g), T_word(p.z, g >> 1u));
}

//!include lib/half.wgsl

// The four bytes of w, less 16: in an f16's mantissa below 0x6400 they read
// as 1024 + q.
fn T_bytes(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x00ff00ffu) | 0x64006400u);
  let odd = unpack2x16float(((w >> 8u) & 0x00ff00ffu) | 0x64006400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(1040.0);
}

// The 32 quants, less 16, of unit g.
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

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = T_quants(w);
  let d = T_half(w.d, g);
  return array<vec4<f32>, 8>(
    d * q[0],
    d * q[1],
    d * q[2],
    d * q[3],
    d * q[4],
    d * q[5],
    d * q[6],
    d * q[7]);
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = T_quants(w);
  var s = q[0] * x[0];
  s = fma(q[1], x[1], s);
  s = fma(q[2], x[2], s);
  s = fma(q[3], x[3], s);
  s = fma(q[4], x[4], s);
  s = fma(q[5], x[5], s);
  s = fma(q[6], x[6], s);
  s = fma(q[7], x[7], s);
  return T_half(w.d, g) * ((s.x + s.y) + (s.z + s.w));
}
