// The same norm with another weight, to a result of its own.
@group(0) @binding(0) var<storage, read> nw1: array<value>;
@group(0) @binding(1) var<storage, read_write> y1: array<value>;
struct More { one: value }

fn more_of(i: u32) -> More { return More(nw1[i]); }
fn put_more(i: u32, v: value, m: More) { y1[i] = v * m.one; }
