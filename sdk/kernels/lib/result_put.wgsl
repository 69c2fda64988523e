@group(0) @binding(0) var<storage, read_write> y: array<value>;

fn old(i: u32) -> value { return value(0.0); }
fn put(i: u32, v: value, before: value) { y[i] = v; }
