//! Links between a real server and real workers, over loopback, with trouble in between.

#[cfg(test)]
mod chaos;
#[cfg(test)]
mod support;

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod joining;
#[cfg(test)]
mod keys_in_use;
#[cfg(test)]
mod nginx;
#[cfg(test)]
mod outer_tls;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod tcp;
#[cfg(test)]
mod threats;
#[cfg(test)]
mod websocket;
