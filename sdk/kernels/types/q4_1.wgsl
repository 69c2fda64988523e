// Q4_1: y = d * q + m.
// Plane 0: one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: f16 d, f16 m a unit.

struct T_raw { q: vec4<u32>, dm: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g));
}

//!include lib/sum.wgsl

//!include lib/unsigned_nibbles.wgsl

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
//!include lib/nibbles_dot.wgsl
  let sx = T_sum(((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])));
  return dm.x * T_sum(s) + dm.y * sx;
}
