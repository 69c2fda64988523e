// Two values a word; T_four gives those of two words.
struct T_raw { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32> }

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(T[p.x + 4u * g], T[p.x + 4u * g + 1u], T[p.x + 4u * g + 2u], T[p.x + 4u * g + 3u]);
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
