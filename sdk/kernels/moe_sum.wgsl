// y[t][i] = (res[t][i] +) Σ_k pw[t][k] · dn[t][k][i], summed in pick order. dn is [T][top_k][n], pw [T][top_k], y [T][n].
// Eight picks, or four, are on their way at once. Grid: ceil(n / values / W), T.
struct Constants { n: u32, top_k: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
override W: u32 = 64u;
//!choose value one four
@group(0) @binding(1) var<storage, read> dn: array<value>;
@group(0) @binding(2) var<storage, read> pw: array<f32>;
//!choose out put add as result

@compute @workgroup_size(W)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
  let n = c.n / VALUES;
  if (gid.x >= n) { return; }
  let before = old(gid.y * n + gid.x);
  var p = gid.y * c.top_k;
  let end = p + c.top_k;
  var i = p * n + gid.x;
  var sum = value(0.0);
  for (; p + 8u <= end; p += 8u) {
    let a = pw[p] * dn[i];
    let b = pw[p + 1u] * dn[i + n];
    let d = pw[p + 2u] * dn[i + 2u * n];
    let e = pw[p + 3u] * dn[i + 3u * n];
    let f = pw[p + 4u] * dn[i + 4u * n];
    let g = pw[p + 5u] * dn[i + 5u * n];
    let h = pw[p + 6u] * dn[i + 6u * n];
    sum = sum + a + b + d + e + f + g + h + pw[p + 7u] * dn[i + 7u * n];
    i += 8u * n;
  }
  for (; p + 4u <= end; p += 4u) {
    let a = pw[p] * dn[i];
    let b = pw[p + 1u] * dn[i + n];
    let d = pw[p + 2u] * dn[i + 2u * n];
    sum = sum + a + b + d + pw[p + 3u] * dn[i + 3u * n];
    i += 4u * n;
  }
  for (; p < end; p++) {
    sum += pw[p] * dn[i];
    i += n;
  }
  put(gid.y * n + gid.x, sum, before);
}
