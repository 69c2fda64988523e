// Cache elements in f16, two to a word.
alias kv2 = u32;
fn kv_pack(v: vec2<f32>) -> kv2 { return pack2x16float(v); }
fn kv_unpack(v: kv2) -> vec2<f32> { return unpack2x16float(v); }
