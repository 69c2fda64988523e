// Q4_0: y = d * (q - 8).
// Plane 0: one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: f16 d a unit.

struct T_raw { q: vec4<u32>, d: u32 }

// The word at index i of the plane that starts at base.
fn T_word(base: u32, i: u32) -> u32 {
  return T[base + (i >> 2u)][i & 3u];
}

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g >> 1u));
}

// The f16 at index i of a plane, in its word w.
fn T_half(w: u32, i: u32) -> f32 {
  return unpack2x16float(w >> ((i & 1u) << 4u)).x;
}

// The low nibbles of w's four bytes, less 8: in an f16's mantissa below 0x6400
// they read as 1024 + q.
fn T_low(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x000f000fu) | 0x64006400u);
  let odd = unpack2x16float(((w >> 8u) & 0x000f000fu) | 0x64006400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(1032.0);
}

// The high nibbles, left where they are: below 0x5400 they read as 64 + q.
fn T_high(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x00f000f0u) | 0x54005400u);
  let odd = unpack2x16float(((w >> 8u) & 0x00f000f0u) | 0x54005400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(72.0);
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = w.q;
  let d = T_half(w.d, g);
  return array<vec4<f32>, 8>(
    d * T_low(q.x),
    d * T_low(q.y),
    d * T_low(q.z),
    d * T_low(q.w),
    d * T_high(q.x),
    d * T_high(q.y),
    d * T_high(q.z),
    d * T_high(q.w));
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = w.q;
  var s = T_low(q.x) * x[0];
  s = fma(T_low(q.y), x[1], s);
  s = fma(T_low(q.z), x[2], s);
  s = fma(T_low(q.w), x[3], s);
  s = fma(T_high(q.x), x[4], s);
  s = fma(T_high(q.y), x[5], s);
  s = fma(T_high(q.z), x[6], s);
  s = fma(T_high(q.w), x[7], s);
  return T_half(w.d, g) * ((s.x + s.y) + (s.z + s.w));
}
