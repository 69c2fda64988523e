// The memory of units that are nibbles with an f16 d.
struct T_raw { q: vec4<u32>, d: u32 }

//!include lib/word.wgsl

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + g], T_word(p.y, g >> 1u));
}

//!include lib/half.wgsl
