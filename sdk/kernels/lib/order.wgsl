// An order of f32 values, given as bits: the greater the value, the greater the key. -0 is 0, a NaN lies below
// all numbers, and no value has the key 0.
fn order_key(bits: u32) -> u32 {
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) { return 1u; }
  if (size == 0u) { return 0x80000000u; }
  return select(~bits, bits | 0x80000000u, bits == size);
}

// The value of a key that is a number's.
fn keyed_value(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u));
}
