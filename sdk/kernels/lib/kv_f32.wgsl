// Cache elements in f32.
alias kv2 = vec2<f32>;
fn kv_pack(v: vec2<f32>) -> kv2 { return v; }
fn kv_unpack(v: kv2) -> vec2<f32> { return v; }
