// The four bytes of w less their zero point. In an f16's mantissa below 0x6400 they read as 1024 + q; $less is 1024 and the zero point.
fn T_bytes(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x00ff00ffu) | 0x64006400u);
  let odd = unpack2x16float(((w >> 8u) & 0x00ff00ffu) | 0x64006400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>($less);
}
