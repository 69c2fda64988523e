// IQ4_NL: y = d * level[q], 16 fixed levels (kvalues_iq4nl in ggml).
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

// The level of each of four quants: levels + 128 lie as bytes in four words,
// since this WGSL cannot index a constant array by a variable.
fn T_level(q: vec4<u32>) -> vec4<f32> {
  let second = (q & vec4<u32>(4u)) != vec4<u32>(0u);
  let below = select(vec4<u32>(0x3f2d1801u), vec4<u32>(0x766a5d4fu), second);
  let above = select(vec4<u32>(0xa6998d81u), vec4<u32>(0xf1d9c5b5u), second);
  let word = select(below, above, (q & vec4<u32>(8u)) != vec4<u32>(0u));
  return vec4<f32>((word >> ((q & vec4<u32>(3u)) << vec4<u32>(3u))) & vec4<u32>(0xffu)) - vec4<f32>(128.0);
}

// The levels of the low nibbles of w's four bytes, and of the high ones.
fn T_low(w: u32) -> vec4<f32> {
  return T_level((vec4<u32>(w) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u));
}

fn T_high(w: u32) -> vec4<f32> {
  return T_level((vec4<u32>(w) >> vec4<u32>(4u, 12u, 20u, 28u)) & vec4<u32>(15u));
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
