// Q3_K: y = d * sc * (q - 4).
// Plane 0: low two bits, two words a unit: value j is bit pair j/8 of byte j%8.
// Plane 1: third bits, one word a unit: value j is bit j/4 of byte j%4.
// Plane 2: int8 sc of values 0 to 15, int8 sc of 16 to 31 a unit.
// Plane 3: f16 d a superblock of eight units.

struct T_raw { h: vec2<u32>, b: u32, sc: u32, d: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(
    vec2<u32>(T_word(p.x, 2u * g), T_word(p.x, 2u * g + 1u)),
    T_word(p.y, g),
    T_word(p.z, g >> 1u),
    T_word(p.w, g >> 4u));
}

//!include lib/half.wgsl
//!include lib/u16.wgsl

//!include lib/sum.wgsl

//!include lib/bytes.wgsl less 1028.0

// The 32 quants, less 4, of unit g.
fn T_quants(w: T_raw) -> array<vec4<f32>, 8> {
  let h = w.h;
  let b = w.b;
  return array<vec4<f32>, 8>(
    T_bytes((h.x & 0x03030303u) | ((b << 2u) & 0x04040404u)),
    T_bytes((h.y & 0x03030303u) | ((b << 1u) & 0x04040404u)),
    T_bytes(((h.x >> 2u) & 0x03030303u) | (b & 0x04040404u)),
    T_bytes(((h.y >> 2u) & 0x03030303u) | ((b >> 1u) & 0x04040404u)),
    T_bytes(((h.x >> 4u) & 0x03030303u) | ((b >> 2u) & 0x04040404u)),
    T_bytes(((h.y >> 4u) & 0x03030303u) | ((b >> 3u) & 0x04040404u)),
    T_bytes(((h.x >> 6u) & 0x03030303u) | ((b >> 4u) & 0x04040404u)),
    T_bytes(((h.y >> 6u) & 0x03030303u) | ((b >> 5u) & 0x04040404u)));
}

//!include lib/sixteens.wgsl
