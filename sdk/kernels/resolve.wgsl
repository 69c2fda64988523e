// Host operation after a token's routing: notes the picks of MoE layer number index at word log of token, and where one of
// them has no slot sets word 0, stop, to index + 1 and zeroes the words first .. last - 1: the grids of all that comes
// after, so that it does not run. Does nothing once stop is set. picks is [top_k], residency [experts] with 0xFFFFFFFF for none.
// Behind the picks it notes the layer's guesses, [depth][top_k] of them with stride words from one to the next.
// Grid: 1.
struct Constants { index: u32, top_k: u32, experts: u32, first: u32, last: u32, log: u32, depth: u32, stride: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
override W: u32 = 64u;
@group(0) @binding(1) var<storage, read> picks: array<u32>;
@group(0) @binding(2) var<storage, read> residency: array<u32>;
@group(0) @binding(3) var<storage, read> guesses: array<u32>;
@group(0) @binding(4) var<storage, read_write> token: array<u32>;

@compute @workgroup_size(W)
fn main(@builtin(local_invocation_index) lid: u32) {
  let stopped = token[0];
  workgroupBarrier(); // all have read stop before one sets it
  if (stopped != 0u) { return; }
  var missing = false;
  for (var k = 0u; k < c.top_k; k++) {
    let e = picks[k];
    if (e >= c.experts) { missing = true; } // the host says what is wrong
    else if (residency[e] == 0xFFFFFFFFu) { missing = true; }
  }
  for (var k = lid; k < c.top_k; k += W) { token[c.log + k] = picks[k]; }
  for (var i = lid; i < c.depth * c.top_k; i += W) {
    token[c.log + c.top_k + i] = guesses[i / c.top_k * c.stride + i % c.top_k];
  }
  if (!missing) { return; }
  if (lid == 0u) { token[0] = c.index + 1u; }
  for (var i = c.first + lid; i < c.last; i += W) { token[i] = 0u; }
}
