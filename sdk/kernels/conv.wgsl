// Causal depthwise convolution and SiLU over n columns of x's rows: y[ch] = silu(Σ_j kernel[ch][j] · x at TAPS-1-j tokens back).
// state holds the last TAPS - 1 inputs, oldest first, and moves on by T. x is [rows][stride], its columns start at off; kernel
// [n][TAPS], state [TAPS-1][n], y [rows][n]. LANES invocations share a channel's tokens, each a run of them in order.
// Grid: ceil(n / (W / LANES)).
struct Constants { n: u32, stride: u32, off: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
override TAPS: u32 = 4u;
override W: u32 = 64u;
override LANES: u32 = 1u;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> kernel: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// The input of channel ch at token t of the step, where t counts from TAPS - 1: those below lie in the state.
fn input(t: u32, ch: u32) -> f32 {
  if (t < TAPS - 1u) { return state[t * c.n + ch]; }
  return x[(step.row0 + t - (TAPS - 1u)) * c.stride + c.off + ch];
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let channels = W / LANES;
  let ch = wg.x * channels + lid % channels;
  let run = (step.T + LANES - 1u) / LANES;
  let first = lid / channels * run;
  let last = min(first + run, step.T);
  let used = ch < c.n && first < last;
  var s: array<f32, TAPS>;
  var k: array<f32, TAPS>;
  if (used) {
    for (var j = 0u; j < TAPS; j++) { k[j] = kernel[ch * TAPS + j]; }
    for (var j = 0u; j < TAPS - 1u; j++) { s[j] = input(first + j, ch); }
  }
  if (LANES > 1u) { storageBarrier(); } // all that read the old state have done so
  if (!used) { return; }
  for (var t = first; t < last; t++) {
    s[TAPS - 1u] = input(t + TAPS - 1u, ch);
    var sum = 0.0;
    for (var j = 0u; j < TAPS; j++) { sum += k[j] * s[j]; }
    y[(step.row0 + t) * c.n + ch] = sum / (1.0 + exp(-sum));
    for (var j = 0u; j < TAPS - 1u; j++) { s[j] = s[j + 1u]; }
  }
  if (last < step.T) { return; }
  for (var j = 0u; j < TAPS - 1u; j++) { state[j * c.n + ch] = s[j]; }
}
