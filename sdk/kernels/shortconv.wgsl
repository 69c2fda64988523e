// Gated short convolution (LFM2): with a row b | g | u of bcx, bu = b ⊙ u, y = g ⊙ Σ_j kernel[ch][j] · bu at TAPS-1-j tokens back.
// state holds the last TAPS - 1 rows of bu, oldest first, and moves on by T. bcx is [rows][3 · hidden], kernel [hidden][TAPS].
// Grid: ceil(hidden / W). Walks T tokens in order, T · 2 · TAPS loop iterations.
struct Constants { hidden: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
override TAPS: u32 = 3u;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> bcx: array<f32>;
@group(0) @binding(2) var<storage, read> kernel: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(W)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
  let ch = gid.x;
  if (ch >= c.hidden) { return; }
  var s: array<f32, TAPS>;
  var k: array<f32, TAPS>;
  for (var j = 0u; j < TAPS; j++) { k[j] = kernel[ch * TAPS + j]; }
  for (var j = 0u; j < TAPS - 1u; j++) { s[j] = state[j * c.hidden + ch]; }
  for (var t = 0u; t < step.T; t++) {
    let row = (step.row0 + t) * 3u * c.hidden + ch;
    s[TAPS - 1u] = bcx[row] * bcx[row + 2u * c.hidden];
    var sum = 0.0;
    for (var j = 0u; j < TAPS; j++) { sum += k[j] * s[j]; }
    y[(step.row0 + t) * c.hidden + ch] = bcx[row + c.hidden] * sum;
    for (var j = 0u; j < TAPS - 1u; j++) { s[j] = s[j + 1u]; }
  }
  for (var j = 0u; j < TAPS - 1u; j++) { state[j * c.hidden + ch] = s[j]; }
}
