// p = softmax(logit) over all experts; experts are picked by p.
//!include lib/sum.wgsl

fn scores_of(t: u32, lid: u32) {
  var m = logit(t, 0u);
  for (var e = lid; e < E; e += W) { m = max(m, logit(t, e)); }
  m = max_all(lid, m);
  workgroupBarrier();
  var sum = 0.0;
  for (var e = lid; e < E; e += W) {
    prob[e] = exp(logit(t, e) - m);
    sum += prob[e];
  }
  sum = sum_all(lid, sum);
  for (var e = lid; e < E; e += W) {
    prob[e] = prob[e] / sum;
    rank[e] = order_key(bitcast<u32>(prob[e]));
  }
}
