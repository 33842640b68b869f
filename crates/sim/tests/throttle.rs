//! Goal: a destination that answers 429 is left alone as it asks, costs its neighbours nothing, and with an adaptive
//! rate is used to the full. Method: the built-in scenario, which `simulate throttle` runs, too.

use tidegate_sim::scenario::ALL;

#[test]
fn a_throttled_destination_is_respected_used_and_no_burden_to_others() {
    let throttle = ALL.iter().find(|scenario| scenario.name == "throttle").expect("a built-in scenario");
    let mut told = vec![];
    let report = (throttle.run)(1, &mut |share, _| told.push(share));
    for finding in &report.findings {
        println!("{}: {} (should be: {:?})", finding.what, finding.value, finding.target);
    }
    let wrong: Vec<_> = report.findings.iter().filter(|finding| !finding.holds).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(report.deliveries > 1_000_000, "too little happened to mean anything: {}", report.deliveries);
    assert!(told.is_sorted() && told.iter().all(|share| (0.0..=1.0).contains(share)), "{told:?}");
}
