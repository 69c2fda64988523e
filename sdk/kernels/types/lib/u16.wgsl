// The 16 bits at index i of a plane, in the low half, of their word w.
fn T_u16(w: u32, i: u32) -> u32 {
  return w >> ((i & 1u) << 4u);
}
