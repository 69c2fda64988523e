// Q8_0: y = d * q.
// Plane 0: two vec4<u32> a unit, byte j is the int8 q of value j.
// Plane 1: f16 d a unit.

// The f16 at index i of the plane that starts at base.
fn T_half(base: u32, i: u32) -> f32 {
  return unpack2x16float(T[base + (i >> 3u)][(i >> 1u) & 3u] >> ((i & 1u) << 4u)).x;
}

// The four int8 of w: shifting and converting was fastest (-128 included).
fn T_bytes(w: u32) -> vec4<f32> {
  let top = vec4<i32>(bitcast<i32>(w << 24u), bitcast<i32>(w << 16u), bitcast<i32>(w << 8u), bitcast<i32>(w));
  return vec4<f32>(top >> vec4<u32>(24u));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let a = T[p.x + 2u * g];
  let b = T[p.x + 2u * g + 1u];
  let d = T_half(p.y, g);
  return array<vec4<f32>, 8>(
    d * T_bytes(a.x),
    d * T_bytes(a.y),
    d * T_bytes(a.z),
    d * T_bytes(a.w),
    d * T_bytes(b.x),
    d * T_bytes(b.y),
    d * T_bytes(b.z),
    d * T_bytes(b.w));
}

fn T_dot(p: vec4<u32>, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let a = T[p.x + 2u * g];
  let b = T[p.x + 2u * g + 1u];
  var s = T_bytes(a.x) * x[0];
  s = fma(T_bytes(a.y), x[1], s);
  s = fma(T_bytes(a.z), x[2], s);
  s = fma(T_bytes(a.w), x[3], s);
  s = fma(T_bytes(b.x), x[4], s);
  s = fma(T_bytes(b.y), x[5], s);
  s = fma(T_bytes(b.z), x[6], s);
  s = fma(T_bytes(b.w), x[7], s);
  return T_half(p.y, g) * ((s.x + s.y) + (s.z + s.w));
}
