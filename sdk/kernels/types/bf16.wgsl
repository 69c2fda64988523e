// BF16. Plane 0: four vec4<u32> a unit, two bfloat16 a word, the lower first.
// A bfloat16 is the upper half of an f32.

//!include lib/pairs.wgsl

fn T_four(low: u32, high: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4<u32>(low << 16u, low & 0xffff0000u, high << 16u, high & 0xffff0000u));
}

//!include lib/values.wgsl
