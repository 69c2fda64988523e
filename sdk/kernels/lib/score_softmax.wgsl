// p = softmax(logit) over all experts; experts are picked by p.
var<workgroup> shares: array<f32, W>;

fn scores_of(t: u32, lid: u32) {
  var m = logit(t, 0u);
  for (var e = lid; e < E; e += W) { m = max(m, logit(t, e)); }
  shares[lid] = m;
  workgroupBarrier();
  for (var i = 0u; i < W; i++) { m = max(m, shares[i]); }
  workgroupBarrier();
  var sum = 0.0;
  for (var e = lid; e < E; e += W) {
    prob[e] = exp(logit(t, e) - m);
    sum += prob[e];
  }
  shares[lid] = sum;
  workgroupBarrier();
  sum = 0.0;
  for (var i = 0u; i < W; i++) { sum += shares[i]; }
  for (var e = lid; e < E; e += W) {
    prob[e] = prob[e] / sum;
    rank[e] = order_key(bitcast<u32>(prob[e]));
  }
}
