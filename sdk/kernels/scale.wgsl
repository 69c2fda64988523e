// y = x · factor[0], element by element over T rows of width n. Grid: ceil(n / W), T.
struct Constants { n: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> factor: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(W)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
  if (gid.x >= c.n) { return; }
  let i = gid.y * c.n + gid.x;
  y[i] = x[i] * factor[0];
}
