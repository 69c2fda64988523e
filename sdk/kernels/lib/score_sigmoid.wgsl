// p = sigmoid(logit); experts are picked by p + bias.
@group(0) @binding(0) var<storage, read> bias: array<f32>;

fn scores_of(t: u32, lid: u32) {
  for (var e = lid; e < E; e += W) {
    let b = bias[e];
    let p = 1.0 / (1.0 + exp(-logit(t, e)));
    fetch_weight(e);
    prob[e] = p;
    keys[e / 4u][e % 4u] = order_key(bitcast<u32>(p + b));
  }
}
