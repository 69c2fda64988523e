// The word at index i of the plane that starts at base.
fn T_word(base: u32, i: u32) -> u32 {
  return T[base + (i >> 2u)][i & 3u];
}
