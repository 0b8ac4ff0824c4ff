// Vectors, strings, a map, closures and checked arithmetic, as Rust compiles them.
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Item {
    key: u32,
    weight: i64,
    name: String,
}

#[inline(never)]
fn rust_make(n: u32) -> Vec<Item> {
    (0..n)
        .map(|i| Item { key: i * 37 % 101, weight: i as i64 - 20, name: format!("i{}", i % 7) })
        .collect()
}

#[inline(never)]
fn rust_group(items: &[Item]) -> BTreeMap<&str, i64> {
    let mut sums = BTreeMap::new();
    for x in items {
        *sums.entry(x.name.as_str()).or_insert(0) += x.weight * i64::from(x.key);
    }
    sums
}

#[inline(never)]
fn rust_fold(sums: &BTreeMap<&str, i64>) -> i64 {
    sums.iter().fold(7, |a, (k, v)| a.wrapping_mul(31) ^ v.rotate_left(k.len() as u32))
}

fn main() {
    let mut items = rust_make(60);
    items.sort_by(|a, b| a.key.cmp(&b.key).then(b.weight.cmp(&a.weight)));
    println!("{}", rust_fold(&rust_group(&items)));
}
