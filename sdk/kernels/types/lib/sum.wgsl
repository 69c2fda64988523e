fn T_sum(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}
