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

fn suppressed(id: u32) -> bool { return ((mask[id / 32u] >> (id & 31u)) & 1u) == 1u; }

// Fills the queue with the best of this invocation's tokens after the one that was taken last; true if it is full.
fn fill(last: Ranked, row: u32, first: u32, end: u32) -> bool {
  empty_queue();
  for (var id = first; id < end; id += W) {
    let x = Ranked(order_key(logits[row * c.vocab + id]), id);
    if (x.key > queue[KEEP - 1u].key && better(last, x)) {
      if (!suppressed(id)) { keep(x); }
    }
  }
  return queue[KEEP - 1u].key != 0u;
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let first = wg.x * c.chunk + lid;
  let end = min((wg.x + 1u) * c.chunk, c.vocab);
  let part = wg.y * ((c.vocab + c.chunk - 1u) / c.chunk) + wg.x;
  var more = fill(Ranked(NOBODY, 0u), wg.y, first, end);
  var top = Ranked(0u, NOBODY);
  for (var k = 0u; k < N; k++) {
    let best = best_of_group(lid);
    if (k == 0u) { top = best; }
    if (lid == 0u) { ids[part * N + k] = best.id; }
    if (best.key != 0u && best.id == queue[0].id) {
      drop_first();
      if (more && queue[0].key == 0u && k + 1u < N) { more = fill(best, wg.y, first, end); }
    }
  }
  var m = 0xff800000u; // -inf
  var sum = 0.0;
  if (top.key > 1u) {
    m = logits[wg.y * c.vocab + top.id];
    for (var id = first; id < end; id += W) {
      let v = logits[wg.y * c.vocab + id];
      if (order_key(v) > 1u) {
        if (!suppressed(id)) { sum += relative(v, m); }
      }
    }
  }
  let total = sum_of_group(sum, lid);
  if (lid == 0u) {
    sums[part * 2u] = m;
    sums[part * 2u + 1u] = bitcast<u32>(total);
  }
}
