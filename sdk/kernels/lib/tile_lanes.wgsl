// The tile of a many-token product on a software device: each of W lanes has four slots (a token or pair), and the TR weight
// rows come one after the other, a unit of a row dequantized once for all 4 · W slots. Nothing is shared. On llvmpipe a load
// costs each active lane 25 cycles, a multiplication one for all lanes: so a unit of x is loaded once for TR rows, whose sums
// stay in a private array (that indexes cheaply, but its size costs compile time), and a lane without a slot stops at once.
//
// The kernel has the functions tile_begin (sets tile_slots and tile_rows, those of TR and BT that exist), slot_x (where a
// slot's x starts), slot_y (what finish gets for it), x_at, weight_unit and finish (four rows of a slot, perhaps past the
// last). Loops run units · (TR + 1) + TR / 4 times.
override W: u32 = 8u;
override TR: u32 = 32u;
override BT: u32 = 32u; // 4 · W
var<private> tile_slots: u32;
var<private> tile_rows: u32;

// Unit u of slot s, zeros where there is no such slot.
fn slot_unit(s: u32, start: u32, u: u32) -> array<vec4<f32>, 8> {
  var v = array<vec4<f32>, 8>();
  if (s < tile_slots) {
    let i = start + u * 8u;
    v = array<vec4<f32>, 8>(x_at(i), x_at(i + 1u), x_at(i + 2u), x_at(i + 3u), x_at(i + 4u), x_at(i + 5u), x_at(i + 6u), x_at(i + 7u));
  }
  return v;
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  tile_begin(wg);
  if (lid >= tile_slots) { return; }
  let s = vec4<u32>(lid, lid + W, lid + 2u * W, lid + 3u * W);
  let last = tile_slots - 1u;
  let x0 = slot_x(wg, s.x);
  let x1 = slot_x(wg, min(s.y, last));
  let x2 = slot_x(wg, min(s.z, last));
  let x3 = slot_x(wg, min(s.w, last));
  var acc: array<vec4<f32>, TR>; // by row, a component per slot
  for (var u = 0u; u < c.units; u++) {
    let a = slot_unit(s.x, x0, u);
    let b = slot_unit(s.y, x1, u);
    let d = slot_unit(s.z, x2, u);
    let e = slot_unit(s.w, x3, u);
    for (var r = 0u; r < tile_rows; r++) {
      let w = weight_unit(wg, r, u);
      var t = w[0] * mat4x4<f32>(a[0], b[0], d[0], e[0]); // four dot products
      t += w[1] * mat4x4<f32>(a[1], b[1], d[1], e[1]);
      t += w[2] * mat4x4<f32>(a[2], b[2], d[2], e[2]);
      t += w[3] * mat4x4<f32>(a[3], b[3], d[3], e[3]);
      t += w[4] * mat4x4<f32>(a[4], b[4], d[4], e[4]);
      t += w[5] * mat4x4<f32>(a[5], b[5], d[5], e[5]);
      t += w[6] * mat4x4<f32>(a[6], b[6], d[6], e[6]);
      t += w[7] * mat4x4<f32>(a[7], b[7], d[7], e[7]);
      acc[r] += t;
    }
  }
  let y0 = slot_y(wg, s.x);
  let y1 = slot_y(wg, min(s.y, last));
  let y2 = slot_y(wg, min(s.z, last));
  let y3 = slot_y(wg, min(s.w, last));
  for (var r = 0u; r < tile_rows; r += 4u) {
    let m = transpose(mat4x4<f32>(acc[r], acc[r + 1u], acc[r + 2u], acc[r + 3u]));
    finish(wg, y0, r, m[0]);
    if (s.y <= last) { finish(wg, y1, r, m[1]); }
    if (s.z <= last) { finish(wg, y2, r, m[2]); }
    if (s.w <= last) { finish(wg, y3, r, m[3]); }
  }
}
