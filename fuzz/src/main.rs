//! The fuzzer: libFuzzer around one target, which the variable `FUZZ_TARGET` names. `cargo xtask fuzz` builds and runs it.
#![no_main]

use std::sync::OnceLock;

static RUN: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let run = RUN.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
        tidegate_fuzz::find(&name).expect("a target of that name")
    });
    run(data);
});
