// What the host says about this step: T tokens from position pos0, S positions afterwards, activations from row0.
struct Step { T: u32, pos0: u32, S: u32, row0: u32, O: u32, G: u32, chunk: u32, pad: u32 }
@group(0) @binding(0) var<uniform> step: Step;
