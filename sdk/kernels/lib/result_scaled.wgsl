// The residual is added to what is written, and the sum multiplied by a tensor's one value. Both are read early, by old.
@group(0) @binding(0) var<storage, read> res: array<value>;
@group(0) @binding(1) var<storage, read> factor: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<value>;
var<private> times: f32;

fn old(i: u32) -> value {
  times = factor[0];
  return res[i];
}
fn put(i: u32, v: value, before: value) { y[i] = (before + v) * times; }
