// Work split of the matrix-vector kernels: a workgroup of W invocations is W / L teams; a team of L lanes computes R
// rows, each lane every L-th unit of 32 values. A lane has K units of its rows in flight at once: it fetches all before it
// uses one. Rows and units past the last read the last one's memory and are left out then: a branch around a load makes
// loads wait for each other. partial holds the lanes' sums.
override W: u32 = 64u;
override L: u32 = 8u; // 1 or a multiple of 8
override R: u32 = 4u;
override K: u32 = 1u;
override RW: u32 = 256u; // sums in all: R · W, for a pair twice that
var<workgroup> partial: array<f32, RW>;

// The first row of this invocation's team.
fn team_row(group: u32, lid: u32) -> u32 { return (group * (W / L) + lid / L) * R; }

// Hands in the lane's sum number i. After the last one comes team_gather.
fn team_share(lid: u32, i: u32, v: f32) { partial[i * W + lid] = v; }

// A barrier; of more lanes than eight, eight sums are left then.
fn team_gather(lid: u32) {
  workgroupBarrier();
  if (L > 8u) {
    for (var i = lid; i < RW / L * 8u; i += W) {
      let at = i / 8u * L + i % 8u;
      var s = partial[at];
      for (var j = 8u; j < L; j += 8u) { s += partial[at + j]; }
      partial[at] = s;
    }
    workgroupBarrier();
  }
}

// The team's sum number i.
fn team_sum(lid: u32, i: u32) -> f32 {
  let first = i * W + (lid / L) * L;
  var s = partial[first];
  for (var j = 1u; j < min(L, 8u); j++) { s += partial[first + j]; }
  return s;
}
