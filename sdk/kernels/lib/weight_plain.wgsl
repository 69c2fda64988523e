// A pick's weight is what the router gives.
fn fetch_weight(e: u32) {}
fn weight_of(e: u32, w: f32) -> f32 { return w; }
