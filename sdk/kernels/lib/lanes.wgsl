// Work split of the matrix-vector kernels: a workgroup of W invocations is W / L teams; a team of L lanes computes R
// rows, each lane every L-th unit of 32 values. partial holds the lanes' sums, R·W values.
override W: u32 = 64u;
override L: u32 = 8u;
override R: u32 = 4u;
override RW: u32 = 256u; // R · W
var<workgroup> partial: array<f32, RW>;

// The first row of this invocation's team.
fn team_row(group: u32, lid: u32) -> u32 { return (group * (W / L) + lid / L) * R; }

// Sums a team's partials of row r; valid after a barrier, for the invocation that is the team's lane r mod L.
fn team_sum(lid: u32, r: u32) -> f32 {
  let first = r * W + (lid / L) * L;
  var s = 0.0;
  for (var i = 0u; i < L; i++) { s += partial[first + i]; }
  return s;
}
