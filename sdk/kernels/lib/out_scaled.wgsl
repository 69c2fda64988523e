// The residual is added to what is written, and the sum multiplied by a tensor's one value.
@group(0) @binding(0) var<storage, read> res: array<f32>;
@group(0) @binding(1) var<storage, read> factor: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

fn put(i: u32, v: f32) { y[i] = (res[i] + v) * factor[0]; }
