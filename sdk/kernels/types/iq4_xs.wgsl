// IQ4_XS: y = d * sc * level[q], 16 fixed levels (kvalues_iq4nl in ggml).
// Plane 0: one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: int8 sc a unit.
// Plane 2: f16 d a superblock of eight units.

struct T_raw { q: vec4<u32>, sc: u32, d: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g >> 2u), T_word(p.z, g >> 4u));
}

//!include lib/half.wgsl
//!include lib/u8.wgsl
//!include lib/iq4_level.wgsl
//!include lib/by_level.wgsl

// The unit's scale d * sc, exact in f32.
fn T_scale(w: T_raw, g: u32) -> f32 {
  return T_half(w.d, g >> 3u) * f32(bitcast<i32>(T_u8(w.sc, g) << 24u) >> 24u);
}

//!include lib/nibbles.wgsl scale T_scale(w, g)
