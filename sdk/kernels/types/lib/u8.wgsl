// The byte at index i of a plane, in the low bits, of its word w.
fn T_u8(w: u32, i: u32) -> u32 {
  return w >> ((i & 3u) << 3u);
}
