// IQ4_NL: y = d * level[q], 16 fixed levels (kvalues_iq4nl in ggml).
// Plane 0: one vec4<u32> a unit: byte j holds value j in its low
//          nibble and value j + 16 in its high one.
// Plane 1: f16 d a unit.

//!include lib/nibbles_d_raw.wgsl
//!include lib/iq4_level.wgsl
//!include lib/by_level.wgsl
//!include lib/nibbles.wgsl scale T_half(w.d, g)
