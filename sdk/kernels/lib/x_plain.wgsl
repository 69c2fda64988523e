// The activations as they are: a row of x, which begins at vec4 base.
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;

fn x_begin(base: u32, lid: u32) {}

fn x_unit(base: u32, u: u32) -> array<vec4<f32>, 8> {
  let i = base + u * 8u;
  return array<vec4<f32>, 8>(x[i], x[i + 1u], x[i + 2u], x[i + 3u], x[i + 4u], x[i + 5u], x[i + 6u], x[i + 7u]);
}
