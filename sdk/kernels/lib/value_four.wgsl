// Rows, whose lengths are multiples of four, are read by fours.
alias value = vec4<f32>;
override VALUES: u32 = 4u;

fn squares(v: value) -> f32 { return dot(v, v); }
