// Both halves of a gated FFN for this team's rows: y[y_at + row] = glu(gate row · x, up row · x).
fn pair_rows(group: u32, lid: u32, t: u32, gate_at: vec4<u32>, gate_row0: u32, up_at: vec4<u32>, up_row0: u32, y_at: u32) {
  let row0 = team_row(group, lid);
  let base = x_row(t) * c.units * 8u;
  //!each r R: let g$r = (gate_row0 + min(row0 + $ru, c.rows - 1u)) * c.units;
  //!each r R: let h$r = (up_row0 + min(row0 + $ru, c.rows - 1u)) * c.units;
  //!each r R: var a$r = 0.0;
  //!each r R: var b$r = 0.0;
  let u0 = lid % L;
  let last = c.units - 1u;
  //!each k K
    //!each r R: var v$k_$r = gate_fetch(gate_at, g$r + min(u0 + $ku * L, last));
    //!each r R: var w$k_$r = up_fetch(up_at, h$r + min(u0 + $ku * L, last));
  //!end
  x_begin(base, lid); // while the weights are on their way
  for (var u = u0; u < c.units; u += K * L) {
    //!each k K
    if (u + $ku * L < c.units) {
      let v = x_unit(base, u + $ku * L);
      //!each r R: a$r += gate_dot(v$k_$r, g$r + u + $ku * L, v);
      //!each r R: b$r += up_dot(w$k_$r, h$r + u + $ku * L, v);
    }
    //!end
    let next = u + K * L;
    if (next < c.units) {
      //!each k K
        //!each r R: v$k_$r = gate_fetch(gate_at, g$r + min(next + $ku * L, last));
        //!each r R: w$k_$r = up_fetch(up_at, h$r + min(next + $ku * L, last));
      //!end
    }
  }
  //!each r R: team_share(lid, $ru, a$r);
  //!each r R: team_share(lid, R + $ru, b$r);
  team_gather(lid);
  for (var r = lid % L; r < R; r += L) {
    if (row0 + r < c.rows) { y[y_at + row0 + r] = glu(team_sum(lid, r), team_sum(lid, R + r), c.limit); }
  }
}
