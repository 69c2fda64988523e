// MXFP4: y = 2^(e - 128) * level[q], the levels being twice the E2M1 values.
// Plane 0: one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: u8 e a unit.
// A GPU that flushes denormal f32 reads the scales of e = 0 and 1 as zero.

struct T_raw { q: vec4<u32>, e: u32 }

// The word at index i of the plane that starts at base.
fn T_word(base: u32, i: u32) -> u32 {
  return T[base + (i >> 2u)][i & 3u];
}

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g >> 2u));
}

// The byte at index i of a plane, in the low bits, of its word w.
fn T_u8(w: u32, i: u32) -> u32 {
  return w >> ((i & 3u) << 3u);
}

// Twice the E2M1 value of each of four quants: the eight magnitudes are the
// nibbles of one word, since this WGSL cannot index a constant array by a
// variable. Negated as integers, for ggml has no negative zero here.
fn T_level(q: vec4<u32>) -> vec4<f32> {
  let v = vec4<i32>((vec4<u32>(0xc8643210u) >> ((q & vec4<u32>(7u)) << vec4<u32>(2u))) & vec4<u32>(15u));
  return vec4<f32>(select(v, -v, (q & vec4<u32>(8u)) != vec4<u32>(0u)));
}

// The levels of the low nibbles of w's four bytes, and of the high ones.
fn T_low(w: u32) -> vec4<f32> {
  return T_level((vec4<u32>(w) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u));
}

fn T_high(w: u32) -> vec4<f32> {
  return T_level((vec4<u32>(w) >> vec4<u32>(4u, 12u, 20u, 28u)) & vec4<u32>(15u));
}

fn T_scale(w: T_raw, g: u32) -> f32 {
  let e = T_u8(w.e, g) & 0xffu;
  return bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = w.q;
  let d = T_scale(w, g);
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
  return T_scale(w, g) * ((s.x + s.y) + (s.z + s.w));
}
