// A pick's weight is what the router gives, times a factor of the expert's own, which is read before anyone knows who is picked.
@group(0) @binding(0) var<storage, read> expert_scale: array<f32>;
var<workgroup> factors: array<f32, E>;

fn fetch_weight(e: u32) { factors[e] = expert_scale[e]; }
fn weight_of(e: u32, w: f32) -> f32 { return w * factors[e]; }
