// y[t] = x(t) / sqrt(mean(x(t)²) + eps) · nw, rows of n values, perhaps added to a residual; x(t) is row t of x, or row outs[t].
// Grid: T. For readers that can't take the norm in themselves, or should not: several workgroups would each compute it.
// Up to two others of the same x, with weights nw1 and nw2, go to y1 and y2. An invocation keeps its first four values, and all that it needs to write them, in registers: with a workgroup that is wide
// enough memory is waited for once.
struct Constants { n: u32, eps: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
override W: u32 = 64u;
//!choose value one four
@group(0) @binding(1) var<storage, read> x: array<value>;
@group(0) @binding(2) var<storage, read> nw: array<value>;
//!choose rows all outs
//!choose out put add scaled as result
//!choose more none one two
//!include lib/sum.wgsl

struct Kept { x: value, nw: value, old: value, more: More }

// Values i of a row that begins at source of x and at base of y, and what they are written with; zeros behind the row's end.
fn fetch(i: u32, n: u32, source: u32, base: u32) -> Kept {
  var k: Kept;
  if (i < n) { k = Kept(x[source + i], nw[i], old(base + i), more_of(i)); }
  return k;
}

fn write(i: u32, n: u32, base: u32, k: Kept, scale: f32) {
  if (i >= n) { return; }
  let v = k.x * scale;
  put(base + i, v * k.nw, k.old);
  put_more(base + i, v, k.more);
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let n = c.n / VALUES;
  let base = wg.x * n;
  let source = x_row(wg.x) * n;
  let k0 = fetch(lid, n, source, base);
  let k1 = fetch(lid + W, n, source, base);
  let k2 = fetch(lid + 2u * W, n, source, base);
  let k3 = fetch(lid + 3u * W, n, source, base);
  var s = (squares(k0.x) + squares(k1.x)) + (squares(k2.x) + squares(k3.x));
  for (var i = lid + 4u * W; i < n; i += W) { s += squares(x[source + i]); }
  let scale = 1.0 / sqrt(sum_all(lid, s) / f32(c.n) + c.eps);
  write(lid, n, base, k0, scale);
  write(lid + W, n, base, k1, scale);
  write(lid + 2u * W, n, base, k2, scale);
  write(lid + 3u * W, n, base, k3, scale);
  for (var i = lid + 4u * W; i < n; i += W) { write(i, n, base, fetch(i, n, source, base), scale); }
}
