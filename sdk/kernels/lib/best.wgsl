// Picking the best of a workgroup's candidates again and again. A candidate is a token id and the key of its logit; the
// greater key is better, the lower id among equals. An invocation offers the best of its own that is not taken yet.
override W: u32 = 128u; // a power of two
struct Ranked { key: u32, id: u32 }
const NOBODY: u32 = 0xffffffffu; // the id where there is no candidate; its key is 0
var<workgroup> keys: array<u32, W>;
var<workgroup> holders: array<u32, W>;
var<workgroup> sums_of: array<f32, W>;
//!include lib/order.wgsl

fn better(a: Ranked, b: Ranked) -> bool { return a.key > b.key || (a.key == b.key && a.id < b.id); }

// The best of what the group's invocations offer.
fn best_of_group(mine: Ranked, lid: u32) -> Ranked {
  keys[lid] = mine.key;
  holders[lid] = mine.id;
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
