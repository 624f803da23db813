//! Figures and times as people read them. Nothing here knows a language; words are in [`crate::i18n`].

use crate::browser;

/// Which zone times are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zone {
    /// The server does not know the reader's zone, so it writes UTC and says so.
    #[default]
    Utc,
    /// The browser's own.
    Browser,
    /// So many minutes ahead of UTC, as the browser told the server.
    #[cfg(feature = "ssr")]
    Ahead(i32),
}

impl Zone {
    fn offset_minutes(self, time_ms: i64) -> i32 {
        match self {
            Self::Utc => 0,
            Self::Browser => browser::zone_offset_minutes(time_ms).unwrap_or(0),
            #[cfg(feature = "ssr")]
            Self::Ahead(minutes) => minutes,
        }
    }
}

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const DAY_MS: i64 = 86_400_000;

/// A number without decimals: `31`. Without Rust's own way of writing decimal numbers, which can do more than is wanted
/// here and which the browser would have to load.
pub fn whole(value: f64) -> String {
    rounded(value).to_string()
}

/// A number with one decimal: `3.5`, `64.0`.
pub fn tenths(value: f64) -> String {
    let tenths = rounded(value * 10.0);
    let sign = if tenths < 0 { "-" } else { "" };
    let tenths = tenths.unsigned_abs();
    format!("{sign}{}.{}", tenths / 10, tenths % 10)
}

#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest number there is")]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

/// A percentage without its sign: `31`.
pub fn percent(value: f64) -> String {
    whole(value.clamp(0.0, 100.0))
}

/// Bytes as a number of GiB without the unit: `64`, `3.5`, `212`.
pub fn gib(bytes: u64) -> String {
    let value = bytes as f64 / GIB;
    let one_decimal = tenths(value);
    match one_decimal.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None if value >= 100.0 => whole(value),
        None => one_decimal,
    }
}

/// Bytes in the unit that fits: `512 B`, `3.5 KiB`, `12 MiB`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1000.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let number = if unit == "B" || value >= 10.0 { whole(value) } else { tenths(value) };
    format!("{number} {unit}")
}

/// Bytes with thousands separated, for tooltips: `68,719,476,736`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A round trip in milliseconds: `0.8`, `12`.
pub fn milliseconds(value: f64) -> String {
    if value < 10.0 { tenths(value) } else { whole(value) }
}

struct CivilTime {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl CivilTime {
    /// Of a count of milliseconds since 1970, in the proleptic Gregorian calendar.
    fn of(local_ms: i64) -> Self {
        let days = local_ms.div_euclid(DAY_MS);
        let second_of_day = local_ms.rem_euclid(DAY_MS) / 1000;
        // Counted from 1 March of year 0, so that a leap day is the last of its year.
        let from_march = days + 719_468;
        let era = from_march.div_euclid(146_097);
        let day_of_era = from_march.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }
}

/// A moment in full, with its zone: `2025-11-30 12:01:33 UTC+8`.
pub fn full_time(time_ms: i64, zone: Zone) -> String {
    let offset = zone.offset_minutes(time_ms);
    let t = CivilTime::of(time_ms + i64::from(offset) * 60_000);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} {}",
        t.year,
        t.month,
        t.day,
        t.hour,
        t.minute,
        t.second,
        zone_name(offset)
    )
}

/// A moment as short as it is clear: `12:01:33` on the day of `now_ms`, else `11-30 12:01`; in UTC it says so.
pub fn short_time(time_ms: i64, now_ms: i64, zone: Zone) -> String {
    let local_ms = time_ms + i64::from(zone.offset_minutes(time_ms)) * 60_000;
    let local_now_ms = now_ms + i64::from(zone.offset_minutes(now_ms)) * 60_000;
    let t = CivilTime::of(local_ms);
    let suffix = if zone == Zone::Utc { " UTC" } else { "" };
    if local_ms.div_euclid(DAY_MS) == local_now_ms.div_euclid(DAY_MS) {
        return format!("{:02}:{:02}:{:02}{suffix}", t.hour, t.minute, t.second);
    }
    if t.year == CivilTime::of(local_now_ms).year {
        return format!("{:02}-{:02} {:02}:{:02}{suffix}", t.month, t.day, t.hour, t.minute);
    }
    format!("{:04}-{:02}-{:02} {:02}:{:02}{suffix}", t.year, t.month, t.day, t.hour, t.minute)
}

/// For `<time datetime>`.
pub fn machine_time(time_ms: i64) -> String {
    let t = CivilTime::of(time_ms);
    format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", t.year, t.month, t.day, t.hour, t.minute, t.second)
}

fn zone_name(offset_minutes: i32) -> String {
    let sign = if offset_minutes < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset_minutes.abs() / 60, offset_minutes.abs() % 60);
    match (hours, minutes) {
        (0, 0) => "UTC".to_owned(),
        (_, 0) => format!("UTC{sign}{hours}"),
        _ => format!("UTC{sign}{hours}:{minutes:02}"),
    }
}

/// A length of time in its two largest units that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Less than a minute.
    Seconds(u64),
    /// Less than an hour; seconds only below ten minutes.
    Minutes(u64, u64),
    /// Less than two days.
    Hours(u64, u64),
    /// More.
    Days(u64),
}

impl Span {
    /// Of a number of whole seconds.
    pub const fn of_seconds(seconds: u64) -> Self {
        match seconds {
            0..=59 => Self::Seconds(seconds),
            60..=599 => Self::Minutes(seconds / 60, seconds % 60),
            600..=3_599 => Self::Minutes(seconds / 60, 0),
            3_600..=172_799 => Self::Hours(seconds / 3_600, seconds / 60 % 60),
            _ => Self::Days(seconds / 86_400),
        }
    }

    /// From `then_ms` to `now_ms`; nothing when `then_ms` is later, which a late message makes it seem.
    pub fn between(then_ms: i64, now_ms: i64) -> Self {
        Self::of_seconds(u64::try_from((now_ms - then_ms) / 1000).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gib_shows_a_decimal_only_where_it_tells_something() {
        for (bytes, expected) in [
            (64 << 30, "64"),
            (68_702_699_520, "64"),
            (7 << 29, "3.5"),
            (227_633_266_688, "212"),
            (166_161_555_456, "155"),
            (0, "0"),
            (10 << 20, "0"),
            (100 << 20, "0.1"),
        ] {
            assert_eq!(gib(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        for (value, as_whole, as_tenths) in [
            (0.0, "0", "0.0"),
            (0.04, "0", "0.0"),
            (0.96, "1", "1.0"),
            (17.46, "17", "17.5"),
            (-0.04, "0", "0.0"),
            (-0.3, "0", "-0.3"),
            (-12.34, "-12", "-12.3"),
            (f64::NAN, "0", "0.0"),
        ] {
            assert_eq!((whole(value).as_str(), tenths(value).as_str()), (as_whole, as_tenths), "{value}");
        }
    }

    #[test]
    fn times_are_civil() {
        assert_eq!(full_time(0, Zone::Utc), "1970-01-01 00:00:00 UTC");
        assert_eq!(full_time(951_827_696_000, Zone::Utc), "2000-02-29 12:34:56 UTC");
        assert_eq!(full_time(-1, Zone::Utc), "1969-12-31 23:59:59 UTC");
        assert_eq!(machine_time(1_764_504_093_000), "2025-11-30T12:01:33Z");
    }

    #[test]
    fn a_time_gets_longer_with_its_distance() {
        let noon = 1_764_504_093_000;
        assert_eq!(short_time(noon, noon + 60_000, Zone::Utc), "12:01:33 UTC");
        assert_eq!(short_time(noon, noon + DAY_MS, Zone::Utc), "11-30 12:01 UTC");
        assert_eq!(short_time(noon, noon + 60 * DAY_MS, Zone::Utc), "2025-11-30 12:01 UTC");
    }

    #[test]
    fn zones_are_named_by_their_offset() {
        for (minutes, expected) in [(0, "UTC"), (480, "UTC+8"), (-210, "UTC-3:30"), (345, "UTC+5:45")] {
            assert_eq!(zone_name(minutes), expected);
        }
    }

    #[test]
    fn spans_keep_two_units() {
        for (seconds, expected) in [
            (4, Span::Seconds(4)),
            (187, Span::Minutes(3, 7)),
            (754, Span::Minutes(12, 0)),
            (28_830, Span::Hours(8, 0)),
            (172_800, Span::Days(2)),
        ] {
            assert_eq!(Span::of_seconds(seconds), expected);
        }
        assert_eq!(Span::between(2_000, 1_000), Span::Seconds(0));
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(68_719_476_736), "68,719,476,736");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
    }

    proptest::proptest! {
        #[test]
        fn every_moment_is_a_real_date(time_ms in -60_000_000_000_000i64..250_000_000_000_000) {
            let t = CivilTime::of(time_ms);
            proptest::prop_assert!((1..=12).contains(&t.month) && (1..=31).contains(&t.day) && (0..24).contains(&t.hour));
        }

        #[test]
        fn later_moments_have_later_names(time_ms in 0i64..250_000_000_000_000, later in 1_000i64..10_000_000_000) {
            proptest::prop_assert!(machine_time(time_ms) < machine_time(time_ms + later));
        }
    }
}
