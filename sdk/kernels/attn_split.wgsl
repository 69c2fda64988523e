// One token's attention over runs of cached positions: for each query head the greatest score m, the sum of
// exp(score - m), and the values weighted so. A workgroup has G query heads; CUTS workgroups share a KV head. attn_merge joins the runs. No score leaves the workgroup.
// q is [rows][kv_heads · CUTS · G · HD]; kc [row][kv_heads · HD]; vc [row][kv_heads · VROW], a value being the first VD of VROW
// (so that a value may be a part of its key, in one cache); part [run][head][VD + 2]: m, sum, values.
// Keys seen: the last min(S, window) positions (all where window is 0). Grid: kv_heads · CUTS, runs: lib/runs.wgsl.
struct Constants { kv_heads: u32, window: u32, scale: f32 }
@group(0) @binding(0) var<uniform> c: Constants;
//!include lib/step.wgsl
//!choose kv f16 f32
override HD: u32 = 64u;
override VD: u32 = 64u;
override VROW: u32 = 64u;
override G: u32 = 4u;
override CUTS: u32 = 1u;
override W: u32 = 128u;
//!include lib/runs.wgsl

// Where the caches hold position pos of this KV head: a key or value begins at that · (HD or VROW).
fn cache_at(pos: u32, kvh: u32) -> u32 {
  var row = pos;
  if (c.window > 0u) { row = pos % (c.window + step.chunk); }
  return row * c.kv_heads + kvh;
}

//!choose split keys lanes
