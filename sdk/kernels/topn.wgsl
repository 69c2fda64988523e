// The N best tokens of a chunk of the vocabulary and its part of logsumexp; topn_merge joins the chunks.
// logits is [rows][vocab], read as bits so that they come through unchanged. A token whose bit is set in mask (bit
// id mod 32 of word id div 32) takes no part. NaN ranks below -inf and counts nothing in the sum.
// ids is [rows][chunks][N], best first, 0xFFFFFFFF where the chunk has fewer; sums [rows][chunks][2]: the greatest
// number m (-inf where there is none) and Σ exp(logit - m). Grid: chunks = ceil(vocab / chunk), rows.
struct Constants { vocab: u32, chunk: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
override N: u32 = 64u;
@group(0) @binding(1) var<storage, read> logits: array<u32>;
@group(0) @binding(2) var<storage, read> mask: array<u32>;
@group(0) @binding(3) var<storage, read_write> ids: array<u32>;
@group(0) @binding(4) var<storage, read_write> sums: array<u32>;
//!include lib/best.wgsl

fn key_of(row: u32, id: u32) -> u32 {
  if (((mask[id / 32u] >> (id & 31u)) & 1u) == 1u) { return 0u; }
  return order_key(logits[row * c.vocab + id]);
}

// The best of this invocation's tokens after the one that was taken last.
fn offer(last: Ranked, row: u32, first: u32, end: u32) -> Ranked {
  var best = Ranked(0u, NOBODY);
  for (var id = first; id < end; id += W) {
    let x = Ranked(key_of(row, id), id);
    if (x.key != 0u && better(last, x) && better(x, best)) { best = x; }
  }
  return best;
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let first = wg.x * c.chunk + lid;
  let end = min((wg.x + 1u) * c.chunk, c.vocab);
  let part = wg.y * ((c.vocab + c.chunk - 1u) / c.chunk) + wg.x;
  var mine = offer(Ranked(NOBODY, 0u), wg.y, first, end);
  var top = Ranked(0u, NOBODY);
  for (var k = 0u; k < N; k++) {
    let best = best_of_group(mine, lid);
    if (k == 0u) { top = best; }
    if (lid == 0u) { ids[part * N + k] = best.id; }
    if (best.key != 0u && best.id == mine.id) { mine = offer(mine, wg.y, first, end); }
  }
  var m = 0xff800000u; // -inf
  var sum = 0.0;
  if (top.key > 1u) {
    m = logits[wg.y * c.vocab + top.id];
    for (var id = first; id < end; id += W) {
      if (key_of(wg.y, id) > 1u) { sum += relative(logits[wg.y * c.vocab + id], m); }
    }
  }
  let total = sum_of_group(sum, lid);
  if (lid == 0u) {
    sums[part * 2u] = m;
    sums[part * 2u + 1u] = bitcast<u32>(total);
  }
}
