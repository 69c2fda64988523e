// The activations after an RMS norm: x / sqrt(mean(x²) + eps) · nw, for the row of x that begins at vec4 base. Every workgroup
// sums the row's squares itself: on a software device cheaper than a dispatch of its own.
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> nw: array<vec4<f32>>;
//!include lib/sum.wgsl
var<private> x_scale: f32;

fn x_begin(base: u32, lid: u32) {
  let n = c.units * 8u;
  var s = 0.0;
  for (var i = lid; i < n; i += W) {
    let v = x[base + i];
    s += dot(v, v);
  }
  x_scale = 1.0 / sqrt(sum_all(lid, s) / f32(n * 4u) + c.eps);
}

fn x_unit(base: u32, u: u32) -> array<vec4<f32>, 8> {
  let j = u * 8u;
  let i = base + j;
  let s = x_scale;
  return array<vec4<f32>, 8>(
    x[i] * s * nw[j], x[i + 1u] * s * nw[j + 1u], x[i + 2u] * s * nw[j + 2u], x[i + 3u] * s * nw[j + 3u],
    x[i + 4u] * s * nw[j + 4u], x[i + 5u] * s * nw[j + 5u], x[i + 6u] * s * nw[j + 6u], x[i + 7u] * s * nw[j + 7u]);
}
