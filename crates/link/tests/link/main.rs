//! Links between a real server and real workers, over loopback, with trouble in between.

#[cfg(test)]
mod chaos;
#[cfg(test)]
mod support;

#[cfg(test)]
mod requests;
#[cfg(test)]
mod tcp;
