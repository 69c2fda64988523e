// The f16 at index i of a plane, in its word w.
fn T_half(w: u32, i: u32) -> f32 {
  return unpack2x16float(w >> ((i & 1u) << 4u)).x;
}
