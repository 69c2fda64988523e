// For units whose values need no scale, T_values.
fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  return T_values(T_fetch(p, g));
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let v = T_values(w);
//!include lib/values_dot.wgsl of v
  return (s.x + s.y) + (s.z + s.w);
}
