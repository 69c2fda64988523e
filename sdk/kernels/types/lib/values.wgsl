// For units whose values need no scale, T_values.
fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  return T_values(T_fetch(p, g));
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let v = T_values(w);
  var s = v[0] * x[0];
  s = fma(v[1], x[1], s);
  s = fma(v[2], x[2], s);
  s = fma(v[3], x[3], s);
  s = fma(v[4], x[4], s);
  s = fma(v[5], x[5], s);
  s = fma(v[6], x[6], s);
  s = fma(v[7], x[7], s);
  return (s.x + s.y) + (s.z + s.w);
}
