//! When a certificate is valid, and what a clock says to it.

use chrono::{DateTime, TimeDelta, Utc};
use russh::keys::Certificate;
use std::fmt;
use thiserror::Error;

/// The time in which a certificate is valid (PROTOCOL.certkeys of OpenSSH).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From then on.
    pub after: DateTime<Utc>,
    /// Until just before then; `None` for ever.
    pub before: Option<DateTime<Utc>>,
}

/// A certificate is not valid, by the clock of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ValidityFault {
    /// It will be.
    ///
    /// Hardly anybody makes certificates for the future, so this host's clock is behind, or that of the authority was
    /// ahead.
    #[error(
        "it is valid from {after} on, and this host's clock says {now}; hardly anybody makes certificates for the \
         future: set this host's clock right (chronyd, ntpd), or that of the authority if it is ahead"
    )]
    NotYet {
        /// From when on.
        after: Moment,
        /// This host's clock.
        now: Moment,
    },
    /// It was.
    #[error(
        "it was valid until {before}, and this host's clock says {now}; have a new one signed, unless this clock is ahead"
    )]
    Expired {
        /// Until when.
        before: Moment,
        /// This host's clock.
        now: Moment,
    },
}

/// A time, shown to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub DateTime<Utc>);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d %H:%M:%S UTC"))
    }
}

impl Validity {
    /// That of `certificate`.
    pub fn of(certificate: &Certificate) -> Self {
        Self {
            after: moment(certificate.valid_after()).unwrap_or(DateTime::<Utc>::MAX_UTC),
            before: moment(certificate.valid_before()),
        }
    }

    /// What is wrong with it at `now`.
    pub fn check(&self, now: DateTime<Utc>) -> Result<(), ValidityFault> {
        if now < self.after {
            return Err(ValidityFault::NotYet { after: Moment(self.after), now: Moment(now) });
        }
        match self.before {
            Some(before) if now >= before => Err(ValidityFault::Expired { before: Moment(before), now: Moment(now) }),
            _ => Ok(()),
        }
    }
}

impl ValidityFault {
    /// By how much the clock would have to be wrong for the certificate to be valid.
    pub fn off_by(&self) -> TimeDelta {
        match self {
            Self::NotYet { after, now } => after.0 - now.0,
            Self::Expired { before, now } => now.0 - before.0,
        }
    }
}

/// Seconds since 1970, of which the highest number means "for ever".
fn moment(seconds: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn a_certificate_is_valid_from_its_first_second_to_before_its_last() {
        let validity = Validity { after: at(1000), before: Some(at(2000)) };
        for (now, expected) in [(999, false), (1000, true), (1999, true), (2000, false)] {
            assert_eq!(validity.check(at(now)).is_ok(), expected, "{now}");
        }
        assert_eq!(validity.check(at(940)).unwrap_err().off_by(), TimeDelta::minutes(1));
    }

    #[test]
    fn a_certificate_without_an_end_does_not_expire() {
        assert_eq!(moment(u64::MAX), None);
        assert!(Validity { after: at(0), before: None }.check(at(253_402_300_799)).is_ok());
    }

    #[test]
    fn a_fault_names_both_times() {
        let validity = Validity { after: at(1_700_000_000), before: None };
        let text = validity.check(at(0)).unwrap_err().to_string();
        assert!(text.contains("2023-11-14 22:13:20 UTC") && text.contains("1970-01-01 00:00:00 UTC"), "{text}");
    }
}
