// How the positions that a token sees are cut into runs: of KEYS, or of so many times KEYS that there are no more than MOST.
override KEYS: u32 = 128u;
override MOST: u32 = 0u; // 0: any number
fn run_length(seen: u32) -> u32 {
  if (MOST == 0u) { return KEYS; }
  return KEYS * max(1u, (seen + KEYS * MOST - 1u) / (KEYS * MOST));
}
