@group(0) @binding(0) var<storage, read_write> y: array<f32>;

fn put(i: u32, v: f32) { y[i] = v; }
