// The tile rows of a gated FFN alternate: gate row i, up row i. Invocations below 32 dequantize the gate's, the next the up's:
// a GPU's warp runs one of both.
fn row_of(i: u32) -> u32 { return i % 32u * 2u + i / 32u % 2u; }
fn glu_begin(wg: vec3<u32>) { tile_rows = min(TR, (c.rows - wg.x * (TR / 2u)) * 2u); }

fn finish(wg: vec3<u32>, at: u32, r: u32, v: vec4<f32>) {
  let row = wg.x * (TR / 2u) + r / 2u;
  if (row < c.rows) { y[at + row] = glu(v.x, v.y, c.limit); }
  if (row + 1u < c.rows) { y[at + row + 1u] = glu(v.z, v.w, c.limit); }
}
