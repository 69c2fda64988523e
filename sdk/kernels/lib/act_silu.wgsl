// SwiGLU: silu(gate) · up. With a limit L > 0: min(silu(gate), L) · clamp(up, -L, L).
override GELU: u32 = 0u;
fn glu(gate: f32, up: f32, limit: f32) -> f32 {
  let s = gate / (1.0 + exp(-gate));
  if (limit > 0.0) { return min(s, limit) * clamp(up, -limit, limit); }
  return s * up;
}
