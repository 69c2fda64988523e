// MXFP4: y = 2^(e - 128) * level[q], the levels being twice the E2M1 values.
// Plane 0: one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: u8 e a unit.
// A GPU that flushes denormal f32 reads the scales of e = 0 and 1 as zero.

struct T_raw { q: vec4<u32>, e: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g >> 2u));
}

//!include lib/u8.wgsl

// Twice the E2M1 value of each of four quants: the eight magnitudes are the
// nibbles of one word, since this WGSL cannot index a constant array by a
// variable. Negated as integers, for ggml has no negative zero here.
fn T_level(q: vec4<u32>) -> vec4<f32> {
  let v = vec4<i32>((vec4<u32>(0xc8643210u) >> ((q & vec4<u32>(7u)) << vec4<u32>(2u))) & vec4<u32>(15u));
  return vec4<f32>(select(v, -v, (q & vec4<u32>(8u)) != vec4<u32>(0u)));
}

//!include lib/by_level.wgsl

fn T_scale(w: T_raw, g: u32) -> f32 {
  let e = T_u8(w.e, g) & 0xffu;
  return bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
}

//!include lib/nibbles.wgsl scale T_scale(w, g)
