// Gated DeltaNet's decay, one a head: e^(softplus(raw + dt) · a), a ≤ 0. softplus is max(x, 0) + ln(1 + e^-|x|), which never
// overflows; the logarithm is 2 · artanh(u / (2 + u)) as a series, for ln(1 + u) would lose small u, and thousands of tokens add that up.
override CHANNEL: u32 = 0u;
var<workgroup> decays: array<f32, TB>;
var<private> factor: vec4<f32>;

fn softplus(x: f32) -> f32 {
  let u = exp(-abs(x));
  let z = u / (2.0 + u); // at most 1/3
  let q = z * z;
  let sum = 1.0 + q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * (1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0))))));
  return max(x, 0.0) + 2.0 * z * sum;
}

fn share_decays(lid: u32, t0: u32, n: u32, h: u32) {
  if (lid < n) { decays[lid] = exp(softplus(raw[(step.row0 + t0 + lid) * c.raw_stride + c.raw_off + h] + dt[h]) * a[h]); }
}

fn begin_decay(t: u32) { factor = vec4<f32>(decays[t]); }

fn decay(t: u32, i: u32) -> vec4<f32> { return factor; }
