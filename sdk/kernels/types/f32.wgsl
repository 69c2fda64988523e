// F32. Plane 0: eight vec4<f32> a unit, the values as they are.

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(
    bitcast<vec4<f32>>(T[p.x + 8u * g]),
    bitcast<vec4<f32>>(T[p.x + 8u * g + 1u]),
    bitcast<vec4<f32>>(T[p.x + 8u * g + 2u]),
    bitcast<vec4<f32>>(T[p.x + 8u * g + 3u]),
    bitcast<vec4<f32>>(T[p.x + 8u * g + 4u]),
    bitcast<vec4<f32>>(T[p.x + 8u * g + 5u]),
    bitcast<vec4<f32>>(T[p.x + 8u * g + 6u]),
    bitcast<vec4<f32>>(T[p.x + 8u * g + 7u]));
}

fn T_dot(p: vec4<u32>, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let w = T_load(p, g);
  var s = w[0] * x[0];
  s = fma(w[1], x[1], s);
  s = fma(w[2], x[2], s);
  s = fma(w[3], x[3], s);
  s = fma(w[4], x[4], s);
  s = fma(w[5], x[5], s);
  s = fma(w[6], x[6], s);
  s = fma(w[7], x[7], s);
  return (s.x + s.y) + (s.z + s.w);
}
