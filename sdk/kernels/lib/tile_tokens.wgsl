// The slots of a tile are the BT tokens from wg.y · BT of x [T][units · 32], for y [T][y_stride].
fn tokens_begin(wg: vec3<u32>) { tile_slots = min(BT, step.T - wg.y * BT); }
fn slot_x(wg: vec3<u32>, s: u32) -> u32 { return (wg.y * BT + s) * c.units * 8u; }
fn slot_y(wg: vec3<u32>, s: u32) -> u32 { return (wg.y * BT + s) * c.y_stride + c.y_off; }
