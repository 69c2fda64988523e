// Both halves of a gated FFN for this team's rows: y[y_at + row] = glu(gate row · x, up row · x).
fn pair_rows(group: u32, lid: u32, t: u32, gate_at: vec4<u32>, gate_row0: u32, up_at: vec4<u32>, up_row0: u32, y_at: u32) {
  let row0 = team_row(group, lid);
  var g: array<f32, R>;
  var v: array<f32, R>;
  for (var u = lid % L; u < c.units; u += L) {
    let x = x_unit(t, u);
    for (var r = 0u; r < R; r++) {
      if (row0 + r < c.rows) {
        g[r] += gate_dot(gate_at, (gate_row0 + row0 + r) * c.units + u, x);
        v[r] += up_dot(up_at, (up_row0 + row0 + r) * c.units + u, x);
      }
    }
  }
  // The two sums are reduced one after the other, through the same shared memory.
  for (var r = 0u; r < R; r++) { partial[r * W + lid] = g[r]; }
  workgroupBarrier();
  for (var r = lid % L; r < R; r += L) { g[r] = team_sum(lid, r); }
  workgroupBarrier();
  for (var r = 0u; r < R; r++) { partial[r * W + lid] = v[r]; }
  workgroupBarrier();
  for (var r = lid % L; r < R; r += L) {
    if (row0 + r < c.rows) { y[y_at + row0 + r] = glu(g[r], team_sum(lid, r), c.limit); }
  }
}
