// Q8_0: y = d * q.
// Plane 0: two vec4<u32> a unit, byte j is the int8 q of value j.
// Plane 1: f16 d a unit.

struct T_raw { a: vec4<u32>, b: vec4<u32>, d: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + 2u * g], T[p.x + 2u * g + 1u], T_word(p.y, g >> 1u));
}

//!include lib/half.wgsl

// The four int8 of w: shifting and converting was fastest (-128 included).
fn T_bytes(w: u32) -> vec4<f32> {
  let top = vec4<i32>(bitcast<i32>(w << 24u), bitcast<i32>(w << 16u), bitcast<i32>(w << 8u), bitcast<i32>(w));
  return vec4<f32>(top >> vec4<u32>(24u));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let d = T_half(w.d, g);
  return array<vec4<f32>, 8>(
    d * T_bytes(w.a.x),
    d * T_bytes(w.a.y),
    d * T_bytes(w.a.z),
    d * T_bytes(w.a.w),
    d * T_bytes(w.b.x),
    d * T_bytes(w.b.y),
    d * T_bytes(w.b.z),
    d * T_bytes(w.b.w));
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  var s = T_bytes(w.a.x) * x[0];
  s = fma(T_bytes(w.a.y), x[1], s);
  s = fma(T_bytes(w.a.z), x[2], s);
  s = fma(T_bytes(w.a.w), x[3], s);
  s = fma(T_bytes(w.b.x), x[4], s);
  s = fma(T_bytes(w.b.y), x[5], s);
  s = fma(T_bytes(w.b.z), x[6], s);
  s = fma(T_bytes(w.b.w), x[7], s);
  return T_half(w.d, g) * ((s.x + s.y) + (s.z + s.w));
}
