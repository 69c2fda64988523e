// Leaves out the experts of all but the USED best of GROUPS groups, the lower group among equals. A group is E / GROUPS experts in id
// order, ranked by the sum of its two best ranks; where one of them is NaN the group is last.
var<workgroup> group_key: array<u32, GROUPS>;
var<workgroup> group_kept: array<u32, GROUPS>;

// The order_key of the sum of the two best ranks of group g.
fn group_rank(g: u32) -> u32 {
  var best = 0u;
  var second = 0u;
  for (var e = g * (E / GROUPS); e < (g + 1u) * (E / GROUPS); e++) {
    let key = keys[e / 4u][e % 4u];
    second = max(second, min(best, key));
    best = max(best, key);
  }
  if (second <= 1u) { return 1u; }
  return order_key(bitcast<u32>(keyed_value(best) + keyed_value(second)));
}

fn keep_groups(lid: u32) {
  workgroupBarrier();
  for (var g = lid; g < GROUPS; g += W) { group_key[g] = group_rank(g); }
  workgroupBarrier();
  for (var g = lid; g < GROUPS; g += W) {
    var above = 0u; // groups that come before g
    for (var h = 0u; h < GROUPS; h++) {
      if (group_key[h] > group_key[g] || (group_key[h] == group_key[g] && h < g)) { above++; }
    }
    group_kept[g] = select(0u, 1u, above < USED);
  }
  workgroupBarrier();
  for (var e = lid; e < E; e += W) {
    if (group_kept[e / (E / GROUPS)] == 0u) { keys[e / 4u][e % 4u] = 0u; }
  }
}
