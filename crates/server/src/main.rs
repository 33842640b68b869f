//! The `tidegate` binary: all of it is in the library.

use std::process::ExitCode;

/// Many small allocations of many threads: the system's allocator is slower at these, and keeps more.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tidegate::main()
}
