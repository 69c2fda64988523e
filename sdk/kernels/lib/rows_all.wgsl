// Row t of a section by T.
fn x_row(t: u32) -> u32 { return t; }
