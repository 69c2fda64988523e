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

//!include lib/values.wgsl
