//! `gpustack tunnel`: makes the SSH forwards that bring workers and their server together, keeps them, proves that they
//! work, and tells the server about them.

pub mod agent;
pub mod file;
pub mod import;
pub mod plan;
