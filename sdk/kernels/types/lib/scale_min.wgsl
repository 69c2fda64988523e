// The unit's scale d * sc and minimum dmin * m, both exact in f32.
fn T_scale(w: T_raw, g: u32) -> vec2<f32> {
  let s = T_u16(w.sc, g);
  return unpack2x16float(w.dm) * vec2<f32>(vec2<u32>(s & 0xffu, (s >> 8u) & 0xffu));
}
