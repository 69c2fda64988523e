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

//!include lib/bytes.wgsl less 1040.0

//!include lib/fives.wgsl

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
//!include lib/values_dot.wgsl of q
  return T_half(w.d, g) * ((s.x + s.y) + (s.z + s.w));
}
