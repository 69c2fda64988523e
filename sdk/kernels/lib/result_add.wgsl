// The residual is added to what is written; it lies as y does. It is read early, by old.
@group(0) @binding(0) var<storage, read> res: array<value>;
@group(0) @binding(1) var<storage, read_write> y: array<value>;

fn old(i: u32) -> value { return res[i]; }
fn put(i: u32, v: value, before: value) { y[i] = before + v; }
