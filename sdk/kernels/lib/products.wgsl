  // Within a function that has lid, base (x's row) and M_g0 to M_g(R - 1), the first units of the team's rows in each matrix M:
  // the lane's shares of the rows' products with x, M_sum0 to M_sum(R - 1). Matrices, each with its planes: $of.
  //!each m at in $of
    //!each r R: var $m_sum$r = 0.0;
  //!end
  let u0 = lid % L;
  let last = c.units - 1u;
  //!each k K
    //!each m at in $of
      //!each r R: var $m$k_$r = $m_fetch($at, $m_g$r + min(u0 + $ku * L, last));
    //!end
  //!end
  x_begin(base, lid); // while the weights are on their way
  for (var u = u0; u < c.units; u += K * L) {
    //!each k K
    if (u + $ku * L < c.units) {
      let v = x_unit(base, u + $ku * L);
      //!each m at in $of
        //!each r R: $m_sum$r += $m_dot($m$k_$r, $m_g$r + u + $ku * L, v);
      //!end
    }
    //!end
    let next = u + K * L;
    if (next < c.units) {
      //!each k K
        //!each m at in $of
          //!each r R: $m$k_$r = $m_fetch($at, $m_g$r + min(next + $ku * L, last));
        //!end
      //!end
    }
  }
