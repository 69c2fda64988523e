// The activations as they are, through workgroup memory: a row of x, which begins at vec4 base. Lanes want units 128 bytes
// apart, which a GPU loads line by line; here neighbours load neighbours. A unit takes nine vec4s, so that lanes one unit
// apart meet different banks.
override XU: u32 = 96u; // units of room
override XL: u32 = 6u; // vec4s that an invocation has in flight
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
var<workgroup> staged: array<array<vec4<f32>, 9>, XU>;

fn x_begin(base: u32, lid: u32) {
  let n = c.units * 8u;
  for (var i = lid; i < n; i += XL * W) {
    //!each j XL: let v$j = x[base + min(i + $ju * W, n - 1u)];
    //!each j XL: if (i + $ju * W < n) { x_stage(i + $ju * W, v$j); }
  }
  workgroupBarrier();
}

fn x_stage(i: u32, v: vec4<f32>) { staged[i / 8u][i % 8u] = v; }

fn x_unit(base: u32, u: u32) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(staged[u][0], staged[u][1], staged[u][2], staged[u][3], staged[u][4], staged[u][5], staged[u][6], staged[u][7]);
}
