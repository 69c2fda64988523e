// SwiGLU: silu(gate) · up. With a limit L > 0: min(silu(gate), L) · clamp(up, -L, L).
override GELU: u32 = 0u;
//!include lib/limit.wgsl

fn glu(gate: f32, up: f32, limit: f32) -> f32 { return limited(gate / (1.0 + exp(-gate)), up, limit); }
