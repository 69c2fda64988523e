// The tile of a many-token product on a GPU: TR = 64 weight rows × BT slots (a token or pair) pass through shared memory a
// unit (32 columns) at a time; each of W invocations sums 4 rows × 4 · Q slots. What the next unit needs waits in registers
// while this one is multiplied. The columns are written out, with constant indices into two-dimensional arrays: that lets a
// driver drop the bounds checks, worth 1.6x on an H200.
//
// The kernel has the functions that lib/tile_lanes.wgsl lists, and row_of: the tile row that invocation i < 64 dequantizes.
override TR: u32 = 64u;
override BT: u32 = 128u;
override Q: u32 = 2u;   // 1 or 2
override W: u32 = 256u; // 4 · BT / Q
override TN: u32 = 16u; // W / 16
override XS: u32 = 33u; // BT / 4 + 1: the pad keeps columns in different banks
var<private> tile_slots: u32;
var<private> tile_rows: u32;
var<workgroup> ws: array<array<vec4<f32>, 17>, 32>; // [column][row / 4]
var<workgroup> xs: array<array<vec4<f32>, XS>, 32>; // [column][slot / 4]
var<private> acc: array<vec4<f32>, 8>;              // by slot, a component per row
var<private> tm: u32;                               // the invocation's rows start at 4 · tm,
var<private> tn: u32;                               // its slots at 4 · tn, and at 4 · (tn + TN) where Q is 2

fn multiply(k: u32) {
  let a = ws[k][tm];
  let b = xs[k][tn];
  acc[0] = fma(a, vec4<f32>(b.x), acc[0]);
  acc[1] = fma(a, vec4<f32>(b.y), acc[1]);
  acc[2] = fma(a, vec4<f32>(b.z), acc[2]);
  acc[3] = fma(a, vec4<f32>(b.w), acc[3]);
  if (Q > 1u) {
    let d = xs[k][tn + TN];
    acc[4] = fma(a, vec4<f32>(d.x), acc[4]);
    acc[5] = fma(a, vec4<f32>(d.y), acc[5]);
    acc[6] = fma(a, vec4<f32>(d.z), acc[6]);
    acc[7] = fma(a, vec4<f32>(d.w), acc[7]);
  }
}

fn multiply8(k: u32) {
  multiply(k); multiply(k + 1u); multiply(k + 2u); multiply(k + 3u);
  multiply(k + 4u); multiply(k + 5u); multiply(k + 6u); multiply(k + 7u);
}

// Where part i mod 8 of slot i / 8 lies in x, at unit 0; slots that don't exist read the last one's.
fn part_at(wg: vec3<u32>, i: u32) -> u32 { return slot_x(wg, min(i / 8u, tile_slots - 1u)) + i % 8u; }

fn share_x(i: u32, v: vec4<f32>) {
  let k = i % 8u * 4u;
  let s = i / 8u;
  xs[k][s / 4u][s % 4u] = v.x;
  xs[k + 1u][s / 4u][s % 4u] = v.y;
  xs[k + 2u][s / 4u][s % 4u] = v.z;
  xs[k + 3u][s / 4u][s % 4u] = v.w;
}

fn share_w(k: u32, r: u32, v: vec4<f32>) {
  ws[k][r / 4u][r % 4u] = v.x;
  ws[k + 1u][r / 4u][r % 4u] = v.y;
  ws[k + 2u][r / 4u][r % 4u] = v.z;
  ws[k + 3u][r / 4u][r % 4u] = v.w;
}

fn finish_slot(wg: vec3<u32>, s: u32, v: vec4<f32>) {
  if (s < tile_slots) { finish(wg, slot_y(wg, s), tm * 4u, v); }
}

@compute @workgroup_size(W)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  tile_begin(wg);
  tm = lid % 16u;
  tn = lid / 16u;
  let r = row_of(lid);
  let i0 = part_at(wg, lid);
  let i1 = part_at(wg, lid + W);
  let i2 = part_at(wg, lid + 2u * W);
  let i3 = part_at(wg, lid + 3u * W);
  var w: array<vec4<f32>, 8>;
  if (lid < TR) { w = weight_unit(wg, min(r, tile_rows - 1u), 0u); }
  var v0 = x_at(i0);
  var v1 = x_at(i1);
  var v2: vec4<f32>;
  var v3: vec4<f32>;
  if (Q > 1u) { v2 = x_at(i2); v3 = x_at(i3); }
  for (var u = 0u; u < c.units; u++) {
    if (lid < TR) {
      share_w(0u, r, w[0]); share_w(4u, r, w[1]); share_w(8u, r, w[2]); share_w(12u, r, w[3]);
      share_w(16u, r, w[4]); share_w(20u, r, w[5]); share_w(24u, r, w[6]); share_w(28u, r, w[7]);
    }
    share_x(lid, v0);
    share_x(lid + W, v1);
    if (Q > 1u) { share_x(lid + 2u * W, v2); share_x(lid + 3u * W, v3); }
    workgroupBarrier();
    if (u + 1u < c.units) {
      if (lid < TR) { w = weight_unit(wg, min(r, tile_rows - 1u), u + 1u); }
      let next = (u + 1u) * 8u;
      v0 = x_at(i0 + next);
      v1 = x_at(i1 + next);
      if (Q > 1u) { v2 = x_at(i2 + next); v3 = x_at(i3 + next); }
    }
    multiply8(0u); multiply8(8u); multiply8(16u); multiply8(24u);
    workgroupBarrier();
  }
  finish_slot(wg, tn * 4u, acc[0]);
  finish_slot(wg, tn * 4u + 1u, acc[1]);
  finish_slot(wg, tn * 4u + 2u, acc[2]);
  finish_slot(wg, tn * 4u + 3u, acc[3]);
  if (Q > 1u) {
    let s = (tn + TN) * 4u;
    finish_slot(wg, s, acc[4]);
    finish_slot(wg, s + 1u, acc[5]);
    finish_slot(wg, s + 2u, acc[6]);
    finish_slot(wg, s + 3u, acc[7]);
  }
}
