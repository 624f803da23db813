//! The `gpustack` command.

fn main() {}
