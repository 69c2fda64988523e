// The levels of the low nibbles of w's four bytes, and of the high ones.
fn T_low(w: u32) -> vec4<f32> {
  return T_level((vec4<u32>(w) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u));
}

fn T_high(w: u32) -> vec4<f32> {
  return T_level((vec4<u32>(w) >> vec4<u32>(4u, 12u, 20u, 28u)) & vec4<u32>(15u));
}
