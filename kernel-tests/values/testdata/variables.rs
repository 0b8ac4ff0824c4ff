// Keeps each value that its variables take, and prints them at its end as "ROUTINE.NAME VALUE". For
// TestVariables.
use std::hint::black_box;

struct Notes {
    list: [(&'static str, i64); 100],
    len: usize,
}

impl Notes {
    fn note(&mut self, name: &'static str, value: i64) {
        self.list[self.len] = (name, value);
        self.len += 1;
    }
}

pub struct Shape {
    sides: u8,
    length: i32,
    inner: (i16, u64),
}

#[inline(never)]
pub fn grow(shape: &mut Shape, by: i32, n: &mut Notes2) {
    n.0.note("grow.by", by as i64);
    n.0.note("grow.shape.length", shape.length as i64);
    shape.length = shape.length * by;
    n.0.note("grow.shape.length", shape.length as i64);
    n.0.note("grow.shape.sides", shape.sides as i64);
    shape.sides += 1;
    n.0.note("grow.shape.sides", shape.sides as i64);
    n.0.note("grow.shape.inner.__0", shape.inner.0 as i64);
    shape.inner.0 -= 100;
    n.0.note("grow.shape.inner.__0", shape.inner.0 as i64);
}

pub struct Notes2(Notes);

#[inline(never)]
pub fn total(of: &[i64], n: &mut Notes2) -> i64 {
    let mut sum = 0;
    n.0.note("total.sum", sum);
    n.0.note("total.of.length", of.len() as i64);
    for x in of {
        sum += *x;
        n.0.note("total.sum", sum);
    }
    sum
}

fn main() {
    let mut n = Notes2(Notes { list: [("", 0); 100], len: 0 });
    let mut s = Shape { sides: 3, length: 7, inner: (-1, 9) };
    for by in 2..4 {
        grow(black_box(&mut s), black_box(by), &mut n);
    }
    let list = [4, -9, 30, 30];
    let sum = total(black_box(&list), &mut n) + total(black_box(&list[1..3]), &mut n);
    black_box((s.inner.1, sum));
    for (name, value) in &n.0.list[..n.0.len] {
        println!("{} {}", name, value);
    }
}
