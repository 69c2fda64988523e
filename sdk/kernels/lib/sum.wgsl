// What all invocations of a workgroup of W know together, the same in each of them; W is at most 32, or 64, 128, 256, 512 or 1024.
// A wide workgroup adds up in two steps whose loads from shared memory don't wait for each other; a software device's are narrow, and
// its barriers dear. Between two calls a narrow one needs a barrier (again).
const FEW: u32 = W / 16u / (1u + W / 1024u); // what the first step leaves, at most 32
var<workgroup> parts: array<f32, W>;
var<workgroup> few: array<vec4<f32>, 8>;

fn sum_of_16(i: u32) -> f32 {
  return ((parts[i] + parts[i + FEW]) + (parts[i + 2u * FEW] + parts[i + 3u * FEW])) +
    ((parts[i + 4u * FEW] + parts[i + 5u * FEW]) + (parts[i + 6u * FEW] + parts[i + 7u * FEW])) +
    (((parts[i + 8u * FEW] + parts[i + 9u * FEW]) + (parts[i + 10u * FEW] + parts[i + 11u * FEW])) +
    ((parts[i + 12u * FEW] + parts[i + 13u * FEW]) + (parts[i + 14u * FEW] + parts[i + 15u * FEW])));
}

fn max_of_16(i: u32) -> f32 {
  let a = max(vec4<f32>(parts[i], parts[i + FEW], parts[i + 2u * FEW], parts[i + 3u * FEW]),
    vec4<f32>(parts[i + 4u * FEW], parts[i + 5u * FEW], parts[i + 6u * FEW], parts[i + 7u * FEW]));
  let b = max(vec4<f32>(parts[i + 8u * FEW], parts[i + 9u * FEW], parts[i + 10u * FEW], parts[i + 11u * FEW]),
    vec4<f32>(parts[i + 12u * FEW], parts[i + 13u * FEW], parts[i + 14u * FEW], parts[i + 15u * FEW]));
  let m = max(a, b);
  return max(max(m.x, m.y), max(m.z, m.w));
}

fn sum_all(lid: u32, v: f32) -> f32 {
  parts[lid] = v;
  workgroupBarrier();
  if (W <= 32u) {
    var total = 0.0;
    for (var i = 0u; i < W; i++) { total += parts[i]; }
    return total;
  }
  if (lid < FEW) {
    var s = sum_of_16(lid);
    if (W > 512u) { s += sum_of_16(lid + 16u * FEW); }
    few[lid / 4u][lid % 4u] = s;
  }
  workgroupBarrier();
  var s = few[0];
  if (FEW > 4u) { s += few[1]; }
  if (FEW > 8u) { s += few[2] + few[3]; }
  if (FEW > 16u) { s += (few[4] + few[5]) + (few[6] + few[7]); }
  return (s.x + s.y) + (s.z + s.w);
}

fn max_all(lid: u32, v: f32) -> f32 {
  parts[lid] = v;
  workgroupBarrier();
  if (W <= 32u) {
    var greatest = v;
    for (var i = 0u; i < W; i++) { greatest = max(greatest, parts[i]); }
    return greatest;
  }
  if (lid < FEW) {
    var m = max_of_16(lid);
    if (W > 512u) { m = max(m, max_of_16(lid + 16u * FEW)); }
    few[lid / 4u][lid % 4u] = m;
  }
  workgroupBarrier();
  var m = few[0];
  if (FEW > 4u) { m = max(m, few[1]); }
  if (FEW > 8u) { m = max(m, max(few[2], few[3])); }
  if (FEW > 16u) { m = max(m, max(max(few[4], few[5]), max(few[6], few[7]))); }
  return max(max(m.x, m.y), max(m.z, m.w));
}

// Lets a narrow workgroup call sum_all or max_all anew.
fn again() {
  if (W <= 32u) { workgroupBarrier(); }
}
