// y[t][i] = (res[t][i] +) Σ_k pw[t][k] · dn[t][k][i], summed in pick order. dn is [T][top_k][n], pw [T][top_k], y [T][n].
// Grid: ceil(n / W), T.
struct Constants { n: u32, top_k: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> dn: array<f32>;
@group(0) @binding(2) var<storage, read> pw: array<f32>;
//!choose out put add

@compute @workgroup_size(W)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
  if (gid.x >= c.n) { return; }
  let first = gid.y * c.top_k;
  var sum = 0.0;
  for (var k = 0u; k < c.top_k; k++) { sum += pw[first + k] * dn[(first + k) * c.n + gid.x]; }
  put(gid.y * c.n + gid.x, sum);
}
