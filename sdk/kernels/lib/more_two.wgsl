// The same norm with two other weights, to results of their own.
@group(0) @binding(0) var<storage, read> nw1: array<value>;
@group(0) @binding(1) var<storage, read> nw2: array<value>;
@group(0) @binding(2) var<storage, read_write> y1: array<value>;
@group(0) @binding(3) var<storage, read_write> y2: array<value>;
struct More { one: value, two: value }

fn more_of(i: u32) -> More { return More(nw1[i], nw2[i]); }
fn put_more(i: u32, v: value, m: More) {
  y1[i] = v * m.one;
  y2[i] = v * m.two;
}
