//! The admin UI, compiled twice: into the server (feature `ssr`) and to WebAssembly (feature `hydrate`).

#[cfg(feature = "ssr")]
pub mod backend;
pub mod model;
