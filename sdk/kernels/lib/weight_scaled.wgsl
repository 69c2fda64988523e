// A pick's weight is what the router gives, times a factor of the expert's own.
@group(0) @binding(0) var<storage, read> expert_scale: array<f32>;

fn weight_of(e: u32, w: f32) -> f32 { return w * expert_scale[e]; }
