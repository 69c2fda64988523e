// Rows are read value by value.
alias value = f32;
override VALUES: u32 = 1u;

fn squares(v: value) -> f32 { return v * v; }
