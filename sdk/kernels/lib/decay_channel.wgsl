// KDA's decay, one a key dim: e^(lower · sigmoid(a · (raw + dt))), lower < 0. raw and dt have D values a head, a has one.
override CHANNEL: u32 = 1u;
const DECAYS: u32 = TB * D4;
var<workgroup> decays: array<vec4<f32>, DECAYS>;

fn share_decays(lid: u32, t0: u32, n: u32, h: u32) {
  for (var i = lid; i < n * D; i += W) {
    let ch = h * D + i % D;
    let f = raw[(step.row0 + t0 + i / D) * c.raw_stride + c.raw_off + ch] + dt[ch];
    decays[i / 4u][i % 4u] = exp(c.lower / (1.0 + exp(-a[h] * f)));
  }
}

fn begin_decay(t: u32) {}

fn decay(t: u32, i: u32) -> vec4<f32> { return decays[t * D4 + i]; }
