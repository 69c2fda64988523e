// The slots of a tile are the (token, pick) pairs of one expert: tiles[wg.y] is (expert, first, n, 0), its pairs are
// pairs[first..first + n), n ≤ BT. The expert's record starts at tile_record (in 16 bytes) of the bank.
@group(0) @binding(3) var<storage, read> pairs: array<u32>;
@group(0) @binding(4) var<storage, read> tiles: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> residency: array<u32>;
var<private> tile_first: u32;
var<private> tile_record: vec4<u32>;

fn pairs_begin(wg: vec3<u32>) {
  let t = tiles[wg.y];
  tile_first = t.y;
  tile_slots = t.z;
  tile_record = vec4<u32>(residency[t.x] * c.stride);
}
fn slot_y(wg: vec3<u32>, s: u32) -> u32 { return pairs[tile_first + s] * c.rows; }
