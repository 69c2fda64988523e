// The residual is added to what is written; it lies as y does.
@group(0) @binding(0) var<storage, read> res: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

fn put(i: u32, v: f32) { y[i] = res[i] + v; }
