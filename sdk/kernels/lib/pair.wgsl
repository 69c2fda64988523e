// Both halves of a gated FFN for this team's rows: y[y_at + row] = glu(gate row · x, up row · x).
fn pair_rows(group: u32, lid: u32, t: u32, gate_at: vec4<u32>, gate_row0: u32, up_at: vec4<u32>, up_row0: u32, y_at: u32) {
  let row0 = team_row(group, lid);
  let base = x_row(t) * c.units * 8u;
  //!each r R: let gate_g$r = (gate_row0 + min(row0 + $ru, c.rows - 1u)) * c.units;
  //!each r R: let up_g$r = (up_row0 + min(row0 + $ru, c.rows - 1u)) * c.units;
//!include lib/products.wgsl of gate gate_at up up_at
  //!each r R: team_share(lid, $ru, gate_sum$r);
  //!each r R: team_share(lid, R + $ru, up_sum$r);
  team_gather(lid);
  for (var r = lid % L; r < R; r += L) {
    if (row0 + r < c.rows) { y[y_at + row0 + r] = glu(team_sum(lid, r), team_sum(lid, R + r), c.limit); }
  }
}
