// Q3_K: y = d * sc * (q - 4).
// Plane 0: low two bits, two words a unit: value j is bit pair j/8 of byte j%8.
// Plane 1: third bits, one word a unit: value j is bit j/4 of byte j%4.
// Plane 2: int8 sc of values 0 to 15, int8 sc of 16 to 31 a unit.
// Plane 3: f16 d a superblock of eight units.

struct T_raw { h: vec2<u32>, b: u32, sc: u32, d: u32 }

// The word at index i of the plane that starts at base.
fn T_word(base: u32, i: u32) -> u32 {
  return T[base + (i >> 2u)][i & 3u];
}

fn T_fetch(p: vec4<u32>, g: u32) -> T_raw {
  return T_raw(
    vec2<u32>(T_word(p.x, 2u * g), T_word(p.x, 2u * g + 1u)),
    T_word(p.y, g),
    T_word(p.z, g >> 1u),
    T_word(p.w, g >> 4u));
}

// The f16 at index i of a plane, in its word w.
fn T_half(w: u32, i: u32) -> f32 {
  return unpack2x16float(w >> ((i & 1u) << 4u)).x;
}

// The 16 bits at index i of a plane, in the low half, of their word w.
fn T_u16(w: u32, i: u32) -> u32 {
  return w >> ((i & 1u) << 4u);
}

fn T_sum(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

// The two int8 in the low half of w.
fn T_int8s(w: u32) -> vec2<f32> {
  return vec2<f32>(vec2<i32>(bitcast<i32>(w << 24u), bitcast<i32>(w << 16u)) >> vec2<u32>(24u));
}

// The four bytes of w, less 4: in an f16's mantissa below 0x6400 they read
// as 1024 + q.
fn T_bytes(w: u32) -> vec4<f32> {
  let even = unpack2x16float((w & 0x00ff00ffu) | 0x64006400u);
  let odd = unpack2x16float(((w >> 8u) & 0x00ff00ffu) | 0x64006400u);
  return vec4<f32>(even.x, odd.x, even.y, odd.y) - vec4<f32>(1028.0);
}

// The 32 quants, less 4, of unit g.
fn T_quants(w: T_raw) -> array<vec4<f32>, 8> {
  let h = w.h;
  let b = w.b;
  return array<vec4<f32>, 8>(
    T_bytes((h.x & 0x03030303u) | ((b << 2u) & 0x04040404u)),
    T_bytes((h.y & 0x03030303u) | ((b << 1u) & 0x04040404u)),
    T_bytes(((h.x >> 2u) & 0x03030303u) | (b & 0x04040404u)),
    T_bytes(((h.y >> 2u) & 0x03030303u) | ((b >> 1u) & 0x04040404u)),
    T_bytes(((h.x >> 4u) & 0x03030303u) | ((b >> 2u) & 0x04040404u)),
    T_bytes(((h.y >> 4u) & 0x03030303u) | ((b >> 3u) & 0x04040404u)),
    T_bytes(((h.x >> 6u) & 0x03030303u) | ((b >> 4u) & 0x04040404u)),
    T_bytes(((h.y >> 6u) & 0x03030303u) | ((b >> 5u) & 0x04040404u)));
}

fn T_load(p: vec4<u32>, g: u32) -> array<vec4<f32>, 8> {
  let w = T_fetch(p, g);
  let q = T_quants(w);
  let s = T_half(w.d, g >> 3u) * T_int8s(T_u16(w.sc, g));
  return array<vec4<f32>, 8>(
    s.x * q[0],
    s.x * q[1],
    s.x * q[2],
    s.x * q[3],
    s.y * q[4],
    s.y * q[5],
    s.y * q[6],
    s.y * q[7]);
}

fn T_dot(w: T_raw, g: u32, x: array<vec4<f32>, 8>) -> f32 {
  let q = T_quants(w);
  let sc = T_int8s(T_u16(w.sc, g));
  var a = q[0] * x[0];
  a = fma(q[1], x[1], a);
  a = fma(q[2], x[2], a);
  a = fma(q[3], x[3], a);
  var b = q[4] * x[4];
  b = fma(q[5], x[5], b);
  b = fma(q[6], x[6], b);
  b = fma(q[7], x[7], b);
  return T_half(w.d, g >> 3u) * (sc.x * T_sum(a) + sc.y * T_sum(b));
}
