#![allow(missing_docs, clippy::all, clippy::disallowed_methods, clippy::print_stdout)]
use tidegate_core::time::*;
use tidegate_sim::scenario::restart;
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (mut bad, mut dup, mut n) = (0, 0, 0u64);
    for seed in a[0]..a[1] {
        let r = restart::run_for(seed, Millis::hours(a[2] as i64), &mut |_, _| {});
        n += r.deliveries;
        dup += r.findings[3].value.parse::<u64>().unwrap();
        for f in r.findings.iter().filter(|f| !f.holds) {
            bad += 1;
            if bad < 15 {
                println!("seed {seed}: {} = {}", f.what, f.value);
            }
        }
    }
    println!("{bad} bad, {n} deliveries, {dup} dup");
}
