// The 32 quants, of five bits each, of unit g.
fn T_quants(w: T_raw) -> array<vec4<f32>, 8> {
  let q = w.q;
  let h = w.h;
  return array<vec4<f32>, 8>(
    T_bytes((q.x & 0x0f0f0f0fu) | ((h << 4u) & 0x10101010u)),
    T_bytes((q.y & 0x0f0f0f0fu) | ((h << 3u) & 0x10101010u)),
    T_bytes((q.z & 0x0f0f0f0fu) | ((h << 2u) & 0x10101010u)),
    T_bytes((q.w & 0x0f0f0f0fu) | ((h << 1u) & 0x10101010u)),
    T_bytes(((q.x >> 4u) & 0x0f0f0f0fu) | (h & 0x10101010u)),
    T_bytes(((q.y >> 4u) & 0x0f0f0f0fu) | ((h >> 1u) & 0x10101010u)),
    T_bytes(((q.z >> 4u) & 0x0f0f0f0fu) | ((h >> 2u) & 0x10101010u)),
    T_bytes(((q.w >> 4u) & 0x0f0f0f0fu) | ((h >> 3u) & 0x10101010u)));
}
