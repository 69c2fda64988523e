// The low nibbles of w's four bytes: in an f16's mantissa below 0x6400
// they read as 1024 + q.
fn T_low(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x000f000fu) | 0x64006400u);
  let odd = unpack2x16float(((w >> 8u) & 0x000f000fu) | 0x64006400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(1024.0);
}

// The high nibbles, left where they are: below 0x5400 they read as 64 + q.
fn T_high(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x00f000f0u) | 0x54005400u);
  let odd = unpack2x16float(((w >> 8u) & 0x00f000f0u) | 0x54005400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(64.0);
}
