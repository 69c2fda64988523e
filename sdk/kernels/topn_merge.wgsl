// Joins the chunks of topn: per row the N best tokens of the vocabulary, their logits and the logsumexp of all.
// logits is [rows][vocab], ids [rows][chunks][N] and sums [rows][chunks][2] as topn wrote them; top_ids and top_logits
// are [rows][N], best first, 0xFFFFFFFF and -inf where there are fewer; lse [rows]. Grid: 1, rows.
struct Constants { vocab: u32, chunk: u32 }
@group(0) @binding(0) var<uniform> c: Constants;
override N: u32 = 64u;
@group(0) @binding(1) var<storage, read> logits: array<u32>;
@group(0) @binding(2) var<storage, read> ids: array<u32>;
@group(0) @binding(3) var<storage, read> sums: array<u32>;
@group(0) @binding(4) var<storage, read_write> top_ids: array<u32>;
@group(0) @binding(5) var<storage, read_write> top_logits: array<u32>;
@group(0) @binding(6) var<storage, read_write> lse: array<u32>;
//!include lib/best.wgsl

const MINUS_INF: u32 = 0xff800000u;

// Fills the queue with the best of this invocation's candidates after the one that was taken last; true if it is full.
fn fill(last: Ranked, row: u32, lid: u32, chunks: u32) -> bool {
  empty_queue();
  for (var i = lid; i < chunks * N; i += W) {
    let id = ids[row * chunks * N + i];
    if (id != NOBODY) {
      let x = Ranked(order_key(logits[row * c.vocab + id]), id);
      if (x.key > queue[KEEP - 1u].key && better(last, x)) { keep(x); }
    }
  }
  return queue[KEEP - 1u].key != 0u;
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let row = wg.y;
  let chunks = (c.vocab + c.chunk - 1u) / c.chunk;
  var more = fill(Ranked(NOBODY, 0u), row, lid, chunks);
  var m = MINUS_INF;
  for (var k = 0u; k < N; k++) {
    let best = best_of_group(lid);
    var value = MINUS_INF;
    if (best.key != 0u) { value = logits[row * c.vocab + best.id]; }
    if (k == 0u && best.key > 1u) { m = value; }
    if (lid == 0u) {
      top_ids[row * N + k] = best.id;
      top_logits[row * N + k] = value;
    }
    if (best.key != 0u && best.id == queue[0].id) {
      drop_first();
      if (more && queue[0].key == 0u && k + 1u < N) { more = fill(best, row, lid, chunks); }
    }
  }
  var sum = 0.0;
  for (var i = lid; i < chunks; i += W) {
    let at = (row * chunks + i) * 2u;
    sum += bitcast<f32>(sums[at + 1u]) * relative(sums[at], m);
  }
  let total = sum_of_group(sum, lid);
  if (lid == 0u) {
    lse[row] = MINUS_INF;
    if (total > 0.0) { lse[row] = bitcast<u32>(bitcast<f32>(m) + log(total)); }
  }
}
