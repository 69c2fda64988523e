// The tile rows are TR weight rows from wg.x · TR.
fn row_of(i: u32) -> u32 { return i % TR; }
fn rows_begin(wg: vec3<u32>) { tile_rows = min(TR, c.rows - wg.x * TR); }

fn finish(wg: vec3<u32>, at: u32, r: u32, v: vec4<f32>) {
  let row = wg.x * TR + r;
  if (row < c.rows) { put(at + row, v.x); }
  if (row + 1u < c.rows) { put(at + row + 1u, v.y); }
  if (row + 2u < c.rows) { put(at + row + 2u, v.z); }
  if (row + 3u < c.rows) { put(at + row + 3u, v.w); }
}
