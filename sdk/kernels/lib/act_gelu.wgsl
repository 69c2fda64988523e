// GEGLU, tanh form: gelu(gate) · up. With a limit L > 0: min(gelu(gate), L) · clamp(up, -L, L). tanh is clamped: past ±10 it is ±1 in f32, and some drivers overflow there.
override GELU: u32 = 1u;
//!include lib/limit.wgsl

fn glu(gate: f32, up: f32, limit: f32) -> f32 {
  let z = clamp(0.7978845608028654 * gate * (1.0 + 0.044715 * gate * gate), -10.0, 10.0);
  return limited(0.5 * gate * (1.0 + tanh(z)), up, limit);
}
