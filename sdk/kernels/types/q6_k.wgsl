// Q6_K: y = d * sc * (q - 32).
// Plane 0: low four bits, one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: high two bits, two words a unit: value j is bit pair j/8 of byte j%8.
// Plane 2: int8 sc of values 0 to 15, int8 sc of 16 to 31 a unit.
// Plane 3: f16 d a superblock of eight units.

struct T_raw { q: vec4<u32>, h: vec2<u32>, sc: u32, d: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(
    T[p.x + g],
    vec2<u32>(T_word(p.y, 2u * g), T_word(p.y, 2u * g + 1u)),
    T_word(p.z, g >> 1u),
    T_word(p.w, g >> 4u));
}

//!include lib/half.wgsl
//!include lib/u16.wgsl

//!include lib/sum.wgsl

//!include lib/bytes.wgsl less 1056.0

// The 32 quants, less 32, of unit g.
fn T_quants(w: T_raw) -> array<vec4<f32>, 8> {
  let q = w.q;
  let h = w.h;
  return array<vec4<f32>, 8>(
    T_bytes((q.x & 0x0f0f0f0fu) | ((h.x << 4u) & 0x30303030u)),
    T_bytes((q.y & 0x0f0f0f0fu) | ((h.y << 4u) & 0x30303030u)),
    T_bytes((q.z & 0x0f0f0f0fu) | ((h.x << 2u) & 0x30303030u)),
    T_bytes((q.w & 0x0f0f0f0fu) | ((h.y << 2u) & 0x30303030u)),
    T_bytes(((q.x >> 4u) & 0x0f0f0f0fu) | (h.x & 0x30303030u)),
    T_bytes(((q.y >> 4u) & 0x0f0f0f0fu) | (h.y & 0x30303030u)),
    T_bytes(((q.z >> 4u) & 0x0f0f0f0fu) | ((h.x >> 2u) & 0x30303030u)),
    T_bytes(((q.w >> 4u) & 0x0f0f0f0fu) | ((h.y >> 2u) & 0x30303030u)));
}

//!include lib/sixteens.wgsl
