// F16. Plane 0: four vec4<u32> a unit, two f16 a word, the lower first.

//!include lib/pairs.wgsl

fn T_four(low: u32, high: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(low), unpack2x16float(high));
}

//!include lib/values.wgsl
