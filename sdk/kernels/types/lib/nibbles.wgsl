// For units whose values are those of their nibbles, T_low and T_high of a word, by one scale.
fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = w.q;
  let d = $scale;
  return array<vec4<f32>, 8>(
    d * T_low(q.x),
    d * T_low(q.y),
    d * T_low(q.z),
    d * T_low(q.w),
    d * T_high(q.x),
    d * T_high(q.y),
    d * T_high(q.z),
    d * T_high(q.w));
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = w.q;
//!include lib/nibbles_dot.wgsl
  return $scale * ((s.x + s.y) + (s.z + s.w));
}
