// F32. Plane 0: eight vec4<f32> a unit, the values as they are.

struct T_raw { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>, e: vec4<u32>, f: vec4<u32>, g: vec4<u32>, h: vec4<u32> }

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(
    T[p.x + 8u * g],
    T[p.x + 8u * g + 1u],
    T[p.x + 8u * g + 2u],
    T[p.x + 8u * g + 3u],
    T[p.x + 8u * g + 4u],
    T[p.x + 8u * g + 5u],
    T[p.x + 8u * g + 6u],
    T[p.x + 8u * g + 7u]);
}

// The unit's 32 values.
fn T_values(w: T_raw) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(
    bitcast<vec4<f32>>(w.a),
    bitcast<vec4<f32>>(w.b),
    bitcast<vec4<f32>>(w.c),
    bitcast<vec4<f32>>(w.d),
    bitcast<vec4<f32>>(w.e),
    bitcast<vec4<f32>>(w.f),
    bitcast<vec4<f32>>(w.g),
    bitcast<vec4<f32>>(w.h));
}

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
