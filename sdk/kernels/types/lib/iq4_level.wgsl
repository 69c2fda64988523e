// The level of each of four quants: levels + 128 lie as bytes in four words,
// since this WGSL cannot index a constant array by a variable.
fn T_level(q: vec4<u32>) -> vec4<f32> {
  let second = (q & vec4<u32>(4u)) != vec4<u32>(0u);
  let below = select(vec4<u32>(0x3f2d1801u), vec4<u32>(0x766a5d4fu), second);
  let above = select(vec4<u32>(0xa6998d81u), vec4<u32>(0xf1d9c5b5u), second);
  let word = select(below, above, (q & vec4<u32>(8u)) != vec4<u32>(0u));
  return vec4<f32>((word >> ((q & vec4<u32>(3u)) << vec4<u32>(3u))) & vec4<u32>(0xffu)) - vec4<f32>(128.0);
}
