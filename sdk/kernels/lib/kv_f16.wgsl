// Cache elements in f16, two to a word.
alias kv2 = u32;
fn kv_pack(v: vec2<f32>) -> kv2 { return pack2x16float(v); }
fn kv_unpack(v: kv2) -> vec2<f32> { return unpack2x16float(v); }
// Eight elements are one load of 16 bytes.
alias kv_wide = vec4<u32>;
const KV_LOADS: u32 = 1u;
fn kv_low(a: kv_wide, b: kv_wide) -> vec4<f32> { return vec4<f32>(unpack2x16float(a.x), unpack2x16float(a.y)); }
fn kv_high(a: kv_wide, b: kv_wide) -> vec4<f32> { return vec4<f32>(unpack2x16float(a.z), unpack2x16float(a.w)); }
