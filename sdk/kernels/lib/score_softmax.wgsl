// p = softmax(logit) over all experts; experts are picked by p.
//!include lib/sum.wgsl

fn scores_of(t: u32, lid: u32) {
  var m = -3.402823466e38; // a NaN makes the sum one
  for (var e = lid; e < E; e += W) {
    let l = logit(t, e);
    fetch_weight(e);
    prob[e] = l;
    m = max(m, l);
  }
  m = max_all(lid, m);
  again();
  var sum = 0.0;
  for (var e = lid; e < E; e += W) {
    prob[e] = exp(prob[e] - m);
    sum += prob[e];
  }
  sum = sum_all(lid, sum);
  for (var e = lid; e < E; e += W) {
    let p = prob[e] / sum;
    prob[e] = p;
    keys[e / 4u][e % 4u] = order_key(bitcast<u32>(p));
  }
}
