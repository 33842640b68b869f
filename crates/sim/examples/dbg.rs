#![allow(missing_docs, clippy::all, clippy::disallowed_methods, clippy::print_stdout)]
use tidegate_core::time::*;
use tidegate_sim::run::*;
use tidegate_sim::scenario::restart;
struct C(usize, Vec<u64>);
impl Observer for C {
    fn note(&mut self, v: &View<'_>, n: &Note<'_>) {
        let t = v.now;
        match n {
            Note::Accepted(l, d) if l.index() == self.0 && self.1.contains(&d.place.sequence) => {
                println!("{} acc {} {:?} {:?}", t.wall, d.place.sequence, d.place, d.status)
            }
            Note::Sent(l, d) if l.index() == self.0 && self.1.contains(&d.place.sequence) => {
                println!("{} sent {} #{} ", t.wall, d.place.sequence, d.number)
            }
            Note::Answered(l, d, a) if l.index() == self.0 && self.1.contains(&d.place.sequence) => {
                println!("{} ans {} {:?} ", t.wall, d.place.sequence, a.report.outcome)
            }
            Note::Settled(l, d) if l.index() == self.0 && self.1.contains(&d.place.sequence) => {
                println!("{} settled {} {:?}", t.wall, d.place.sequence, d.status)
            }
            Note::Crashed => println!("{} crash", t.wall),
            Note::Restarted => println!("{} restart", t.wall),
            Note::ClockSet => println!("{} clock {}", t.wall, t.mono.as_millis()),
            _ => {}
        }
    }
}
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let setup = restart::world(a[0], Millis::hours(6));
    let mut s = Sim::new(setup, C(a[1] as usize, a[2..].to_vec()));
    s.run_for(Millis::hours(6));
}
