// Q5_1: y = d * q + m.
// Plane 0: low four bits, one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: fifth bits, one word a unit: value j is bit j/4 of byte j%4.
// Plane 2: f16 d, f16 m a unit.

struct T_raw { q: vec4<u32>, h: u32, dm: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g), T_word(p.z, g));
}

//!include lib/sum.wgsl

//!include lib/bytes.wgsl less 1024.0

//!include lib/fives.wgsl

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = T_quants(w);
  let dm = unpack2x16float(w.dm);
  let m = vec4<f32>(dm.y);
  return array<vec4<f32>, 8>(
    dm.x * q[0] + m,
    dm.x * q[1] + m,
    dm.x * q[2] + m,
    dm.x * q[3] + m,
    dm.x * q[4] + m,
    dm.x * q[5] + m,
    dm.x * q[6] + m,
    dm.x * q[7] + m);
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = T_quants(w);
  let dm = unpack2x16float(w.dm);
//!include lib/values_dot.wgsl of q
  let sx = T_sum(((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])));
  return dm.x * T_sum(s) + dm.y * sx;
}
