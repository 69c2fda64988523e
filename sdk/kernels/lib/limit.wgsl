// The product of a gate after its activation and up, of min(gate, L) and clamp(up, -L, L) with a limit L > 0. A NaN shows.
//!include lib/nan.wgsl

fn limited(gate: f32, up: f32, limit: f32) -> f32 {
  let y = gate * up;
  if (limit > 0.0 && !is_nan(gate) && !is_nan(up)) { return min(gate, limit) * clamp(up, -limit, limit); }
  return y;
}
