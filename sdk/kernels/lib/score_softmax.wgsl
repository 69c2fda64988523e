// p = softmax(r) over all experts; experts are picked by p.
fn scores_of(t: u32, lid: u32) {
  var m = r[t * E];
  for (var e = 1u; e < E; e++) { m = max(m, r[t * E + e]); }
  var sum = 0.0;
  for (var e = 0u; e < E; e++) { sum += exp(r[t * E + e] - m); }
  for (var e = lid; e < E; e += W) {
    let p = exp(r[t * E + e] - m) / sum;
    prob[e] = p;
    rank[e] = order_key(bitcast<u32>(p));
  }
}
