// For units whose halves have a scale each, an int8 by the d of eight units; T_quants are their quants.

// The two int8 in the low half of w.
fn T_int8s(w: u32) -> vec2<f32> {
  return vec2<f32>(vec2<i32>(bitcast<i32>(w << 24u), bitcast<i32>(w << 16u)) >> vec2<u32>(24u));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = T_quants(w);
  let s = T_half(w.d, g >> 3u) * T_int8s(T_u16(w.sc, g));
  return array<vec4<f32>, 8>(
    s.x * q[0],
    s.x * q[1],
    s.x * q[2],
    s.x * q[3],
    s.y * q[4],
    s.y * q[5],
    s.y * q[6],
    s.y * q[7]);
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = T_quants(w);
  let sc = T_int8s(T_u16(w.sc, g));
//!include lib/halves_dot.wgsl
  return T_half(w.d, g >> 3u) * (sc.x * T_sum(a) + sc.y * T_sum(b));
}
