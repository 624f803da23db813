//! The command line as a user has it: the real binary, real processes, real files.

#[cfg(test)]
mod migration;
#[cfg(test)]
mod process;
#[cfg(test)]
mod reset;
#[cfg(test)]
mod server;
#[cfg(test)]
mod tunnel;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod worker;
