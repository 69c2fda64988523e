  // s, the products of x with the values $of.
  var s = $of[0] * x[0];
  s = fma($of[1], x[1], s);
  s = fma($of[2], x[2], s);
  s = fma($of[3], x[3], s);
  s = fma($of[4], x[4], s);
  s = fma($of[5], x[5], s);
  s = fma($of[6], x[6], s);
  s = fma($of[7], x[7], s);
