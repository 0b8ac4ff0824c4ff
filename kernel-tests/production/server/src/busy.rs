use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, Write};

struct Account {
    name: String,
    balance: i64,
}

#[inline(never)]
fn interest(a: &mut Account, rate: i64) -> i64 {
    a.balance += a.balance * rate / 100;
    a.balance
}

#[inline(never)]
fn make(n: i64) -> Vec<Account> {
    (0..400)
        .map(|i| Account { name: format!("user{}@host{}", i * n % 97, i % 7), balance: i * 31 % 101 })
        .collect()
}

#[inline(never)]
fn work(n: i64) -> i64 {
    let mut list = make(n);
    list.sort_by(|a, b| a.balance.cmp(&b.balance).then_with(|| a.name.cmp(&b.name)));
    let mut totals: BTreeMap<String, i64> = BTreeMap::new();
    let mut seen: HashMap<String, i64> = HashMap::new();
    for a in &mut list {
        let host = a.name.split('@').nth(1).unwrap_or("").to_string();
        *totals.entry(host).or_insert(0) += interest(a, n % 5);
        *seen.entry(a.name.clone()).or_insert(0) += 1;
    }
    let mut sum: i64 = 0;
    for (name, total) in &totals {
        sum = sum.wrapping_mul(31).wrapping_add(*total).wrapping_add(name.len() as i64);
    }
    sum.wrapping_add(seen.len() as i64)
}

fn main() {
    let mut out = io::stdout();
    for line in io::stdin().lock().lines() {
        let n: i64 = line.unwrap().trim().parse().unwrap();
        writeln!(out, "{}", work(n)).unwrap();
        out.flush().unwrap();
    }
}
