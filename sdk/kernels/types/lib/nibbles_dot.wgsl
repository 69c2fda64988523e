  // s, the products of x with the values of the nibbles of q.
  var s = T_low(q.x) * x[0];
  s = fma(T_low(q.y), x[1], s);
  s = fma(T_low(q.z), x[2], s);
  s = fma(T_low(q.w), x[3], s);
  s = fma(T_high(q.x), x[4], s);
  s = fma(T_high(q.y), x[5], s);
  s = fma(T_high(q.z), x[6], s);
  s = fma(T_high(q.w), x[7], s);
