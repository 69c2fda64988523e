// What all invocations of a workgroup of W know together, the same in each of them. A wide workgroup adds up in two steps,
// so that no invocation reads W values; a software device's are narrow, and its barriers dear.
var<workgroup> parts: array<f32, W>;

fn sum_all(lid: u32, v: f32) -> f32 {
  parts[lid] = v;
  workgroupBarrier();
  var n = W;
  if (W > 32u) {
    var s = 0.0;
    for (var i = lid % 16u; i < W; i += 16u) { s += parts[i]; }
    workgroupBarrier();
    parts[lid] = s;
    workgroupBarrier();
    n = 16u;
  }
  var total = 0.0;
  for (var i = 0u; i < n; i++) { total += parts[i]; }
  return total;
}

fn max_all(lid: u32, v: f32) -> f32 {
  parts[lid] = v;
  workgroupBarrier();
  var n = W;
  if (W > 32u) {
    var m = v;
    for (var i = lid % 16u; i < W; i += 16u) { m = max(m, parts[i]); }
    workgroupBarrier();
    parts[lid] = m;
    workgroupBarrier();
    n = 16u;
  }
  var greatest = v;
  for (var i = 0u; i < n; i++) { greatest = max(greatest, parts[i]); }
  return greatest;
}
