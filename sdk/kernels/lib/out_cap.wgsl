// The soft cap of logits: cap · tanh(v / cap). tanh is clamped: past ±10 it is ±1 in f32, and some drivers overflow there.
// Near 0 it is a series: drivers take tanh from exponentials, whose error is that of values near 1. NaN, which clamp may take
// for a number, stays NaN.
//!include lib/nan.wgsl
@group(0) @binding(0) var<storage, read_write> y: array<f32>;

fn put(i: u32, v: f32) {
  let z = clamp(v / c.cap, -10.0, 10.0);
  let z2 = z * z;
  let near = z * (1.0 + z2 * (-1.0 / 3.0 + z2 * (2.0 / 15.0 - z2 * (17.0 / 315.0))));
  y[i] = select(c.cap * select(tanh(z), near, abs(z) < 0.2), v, is_nan(v));
}
