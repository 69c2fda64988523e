// Picking the best of a workgroup's candidates again and again. A candidate is a token id and the key of its logit; the
// greater key is better, the lower id among equals. Each invocation keeps the best of its own in a queue, and looks through
// them again only when it has given all of a full queue away.
override W: u32 = 128u; // a power of two
override KEEP: u32 = 4u;
struct Ranked { key: u32, id: u32 }
const NOBODY: u32 = 0xffffffffu; // the id where there is no candidate; its key is 0
var<private> queue: array<Ranked, KEEP>; // best first
var<workgroup> keys: array<u32, W>;
var<workgroup> holders: array<u32, W>;
var<workgroup> sums_of: array<f32, W>;
//!include lib/order.wgsl

fn better(a: Ranked, b: Ranked) -> bool { return a.key > b.key || (a.key == b.key && a.id < b.id); }

fn empty_queue() {
  for (var j = 0u; j < KEEP; j++) { queue[j] = Ranked(0u, NOBODY); }
}

// Puts x where it belongs in the queue; the last drops out.
fn keep(x: Ranked) {
  var y = x;
  for (var j = 0u; j < KEEP; j++) {
    let z = queue[j];
    if (better(y, z)) {
      queue[j] = y;
      y = z;
    }
  }
}

// Takes the best out of the queue.
fn drop_first() {
  for (var j = 1u; j < KEEP; j++) { queue[j - 1u] = queue[j]; }
  queue[KEEP - 1u] = Ranked(0u, NOBODY);
}

// The best that any invocation's queue has.
fn best_of_group(lid: u32) -> Ranked {
  keys[lid] = queue[0].key;
  holders[lid] = queue[0].id;
  workgroupBarrier();
  for (var half = W / 2u; half > 0u; half = half / 2u) {
    if (lid < half) {
      let other = Ranked(keys[lid + half], holders[lid + half]);
      if (better(other, Ranked(keys[lid], holders[lid]))) {
        keys[lid] = other.key;
        holders[lid] = other.id;
      }
    }
    workgroupBarrier();
  }
  let best = Ranked(keys[0], holders[0]);
  workgroupBarrier();
  return best;
}

// The sum over the group, always in the same order; invocation 0 has it.
fn sum_of_group(v: f32, lid: u32) -> f32 {
  sums_of[lid] = v;
  workgroupBarrier();
  for (var half = W / 2u; half > 0u; half = half / 2u) {
    if (lid < half) { sums_of[lid] += sums_of[lid + half]; }
    workgroupBarrier();
  }
  return sums_of[0];
}

// exp(v - m) for bits of f32, 1 where they are equal: infinities too.
fn relative(v: u32, m: u32) -> f32 {
  if (v == m) { return 1.0; }
  return exp(bitcast<f32>(v) - bitcast<f32>(m));
}
