// Drivers may take a comparison, min, max or clamp of NaN for one of a number: what must show is told by its bits.
fn is_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
