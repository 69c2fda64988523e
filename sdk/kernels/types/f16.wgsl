// F16. Plane 0: four vec4<u32> a unit, two f16 a word, the lower first.

fn T_four(low: u32, high: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(low), unpack2x16float(high));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let a = T[p.x + 4u * g];
  let b = T[p.x + 4u * g + 1u];
  let c = T[p.x + 4u * g + 2u];
  let d = T[p.x + 4u * g + 3u];
  return array<vec4<f32>, 8>(
    T_four(a.x, a.y),
    T_four(a.z, a.w),
    T_four(b.x, b.y),
    T_four(b.z, b.w),
    T_four(c.x, c.y),
    T_four(c.z, c.w),
    T_four(d.x, d.y),
    T_four(d.z, d.w));
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
