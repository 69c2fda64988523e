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

//!include lib/sum.wgsl

//!include lib/bytes.wgsl less 1024.0

//!include lib/fives.wgsl

//!include lib/scale_min.wgsl

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
//!include lib/values_dot.wgsl of q
  let sx = T_sum(((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])));
  return dm.x * T_sum(s) - dm.y * sx;
}
