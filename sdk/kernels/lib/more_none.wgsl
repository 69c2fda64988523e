// The norm has one weight and one result.
struct More { none: u32 }

fn more_of(i: u32) -> More { return More(0u); }
fn put_more(i: u32, v: value, m: More) {}
