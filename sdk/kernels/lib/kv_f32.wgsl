// Cache elements in f32.
alias kv2 = vec2<f32>;
fn kv_pack(v: vec2<f32>) -> kv2 { return v; }
fn kv_unpack(v: kv2) -> vec2<f32> { return v; }
// Eight elements are two loads of 16 bytes.
alias kv_wide = vec4<f32>;
const KV_LOADS: u32 = 2u;
fn kv_low(a: kv_wide, b: kv_wide) -> vec4<f32> { return a; }
fn kv_high(a: kv_wide, b: kv_wide) -> vec4<f32> { return b; }
