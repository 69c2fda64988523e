// Q2_K: y = (d * sc) * q - dmin * m.
// Plane 0: two words a unit: value j is bit pair j/8 of byte j%8.
// Plane 1: a byte for values 0 to 15 and one for 16 to 31 a unit, sc in the low
//          nibble and m in the high one.
// Plane 2: f16 d, f16 dmin a superblock of eight units.

struct T_raw { h: vec2<u32>, sc: u32, dm: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(
    vec2<u32>(T_word(p.x, 2u * g), T_word(p.x, 2u * g + 1u)),
    T_word(p.y, g >> 1u),
    T_word(p.z, g >> 3u));
}

//!include lib/u16.wgsl

//!include lib/sum.wgsl

//!include lib/bytes.wgsl less 1024.0

// The 32 quants of unit g.
fn T_quants(w: T_raw) -> array<vec4<f32>, 8> {
  let h = w.h;
  return array<vec4<f32>, 8>(
    T_bytes(h.x & 0x03030303u),
    T_bytes(h.y & 0x03030303u),
    T_bytes((h.x >> 2u) & 0x03030303u),
    T_bytes((h.y >> 2u) & 0x03030303u),
    T_bytes((h.x >> 4u) & 0x03030303u),
    T_bytes((h.y >> 4u) & 0x03030303u),
    T_bytes((h.x >> 6u) & 0x03030303u),
    T_bytes((h.y >> 6u) & 0x03030303u));
}

// d * sc of both halves, then dmin * m of both: all exact in f32.
fn T_scale(w: T_raw, g: u32) -> vec4<f32> {
  let s = T_u16(w.sc, g);
  let dm = unpack2x16float(w.dm);
  return dm.xxyy * vec4<f32>((vec4<u32>(s) >> vec4<u32>(0u, 8u, 4u, 12u)) & vec4<u32>(15u));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = T_quants(w);
  let s = T_scale(w, g);
  let m = vec4<f32>(s.z);
  let n = vec4<f32>(s.w);
  return array<vec4<f32>, 8>(
    s.x * q[0] - m,
    s.x * q[1] - m,
    s.x * q[2] - m,
    s.x * q[3] - m,
    s.y * q[4] - n,
    s.y * q[5] - n,
    s.y * q[6] - n,
    s.y * q[7] - n);
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = T_quants(w);
  let dm = T_scale(w, g);
//!include lib/halves_dot.wgsl
  let xa = T_sum((x[0] + x[1]) + (x[2] + x[3]));
  let xb = T_sum((x[4] + x[5]) + (x[6] + x[7]));
  return (dm.x * T_sum(a) - dm.z * xa) + (dm.y * T_sum(b) - dm.w * xb);
}
