// Row t of the head: the step's row whose logits are wanted.
@group(0) @binding(0) var<storage, read> outs: array<u32>;

fn x_row(t: u32) -> u32 { return outs[t]; }
