// y[t][i] = x[t][i] · sigmoid(g) (+ res), rows of n values in groups of width. The gates of group j begin at
// g[t][g_off + j · g_step] in rows of g_row values: one for all of the group, or with EACH 1 one per value.
// Grid: ceil(n / W), T.
struct Constants { n: u32, width: u32, g_row: u32, g_off: u32, g_step: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
override EACH: u32 = 0u;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> g: array<f32>;
//!choose out put add

@compute @workgroup_size(W)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
  if (gid.x >= c.n) { return; }
  let i = gid.y * c.n + gid.x;
  let at = gid.y * c.g_row + c.g_off + gid.x / c.width * c.g_step + gid.x % c.width * EACH;
  put(i, x[i] / (1.0 + exp(-g[at])));
}
