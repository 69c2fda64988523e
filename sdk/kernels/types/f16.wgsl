// F16. Plane 0: four vec4<u32> a unit, two f16 a word, the lower first.

struct T_raw { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32> }

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + 4u * g], T[p.x + 4u * g + 1u], T[p.x + 4u * g + 2u], T[p.x + 4u * g + 3u]);
}

fn T_four(low: u32, high: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(low), unpack2x16float(high));
}

// The unit's 32 values.
fn T_values(w: T_raw) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(
    T_four(w.a.x, w.a.y),
    T_four(w.a.z, w.a.w),
    T_four(w.b.x, w.b.y),
    T_four(w.b.z, w.b.w),
    T_four(w.c.x, w.c.y),
    T_four(w.c.z, w.c.w),
    T_four(w.d.x, w.d.y),
    T_four(w.d.z, w.d.w));
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
