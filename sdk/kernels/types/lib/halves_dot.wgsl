  // a and b, the products of x with the quants q of the unit's halves.
  var a = q[0] * x[0];
  a = fma(q[1], x[1], a);
  a = fma(q[2], x[2], a);
  a = fma(q[3], x[3], a);
  var b = q[4] * x[4];
  b = fma(q[5], x[5], b);
  b = fma(q[6], x[6], b);
  b = fma(q[7], x[7], b);
