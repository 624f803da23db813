//! Figures as vendors' tools print them, and the words that stand in their place.

use api::{AbsentReading, AbsentWhy, ReadingKind};

/// A figure, or why there is none.
pub(crate) type Figure<T> = Result<T, AbsentWhy>;

/// The tools' `MB` and `MiB` are these many bytes: a chip sold with 64 GiB shows 65536.
pub(crate) const MIB_BYTES: u64 = 1024 * 1024;

/// No chip survives outside of these, in degrees Celsius.
const TEMPERATURES_C: std::ops::RangeInclusive<f64> = -100.0..=200.0;
/// More than any card or chassis takes, in watts.
const MOST_POWER_W: f64 = 100_000.0;

/// Why a word stands where a figure ought to be; None when it is no such word.
pub(crate) fn absent(word: &str) -> Option<AbsentWhy> {
    let word = word.trim().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    match word.as_str() {
        "na" | "n/a" | "-" | "--" | "none" | "unknown" => Some(AbsentWhy::NotAvailable),
        "not supported" | "notsupported" | "requested functionality has been deprecated" => {
            Some(AbsentWhy::NotSupported)
        }
        "insufficient permissions" | "no permission" => Some(AbsentWhy::Forbidden),
        "err!" | "error" | "unknown error" | "gpu is lost" | "gpu requires reset" => Some(AbsentWhy::Failed),
        _ => None,
    }
}

/// A plain decimal number. Rust's own parser also takes `inf`, `nan` and exponents, which no tool prints for a reading.
pub(crate) fn number(text: &str) -> Figure<f64> {
    let text = text.trim();
    if let Some(why) = absent(text) {
        return Err(why);
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+'));
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite()).ok_or(AbsentWhy::Unreadable)
}

/// A whole number that is not negative.
pub(crate) fn integer(text: &str) -> Figure<u64> {
    let text = text.trim();
    if let Some(why) = absent(text) {
        return Err(why);
    }
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or(AbsentWhy::Unreadable)
}

/// A number in one of `units`, or without any.
fn number_in(text: &str, units: &[&str]) -> Figure<f64> {
    let text = text.trim();
    let bare = units.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    number(bare)
}

/// `37`, `37%`, `37.5 %`.
pub(crate) fn percent(text: &str) -> Figure<f64> {
    number_in(text, &["%"]).and_then(|number| within(number, (0.0..=100.0).contains(&number)))
}

/// `45`, `45C`, `45 C`.
pub(crate) fn celsius(text: &str) -> Figure<f64> {
    number_in(text, &["°C", "C", "c"]).and_then(|number| within(number, TEMPERATURES_C.contains(&number)))
}

/// `93.9`, `93.9W`, `106 W`.
pub(crate) fn watts(text: &str) -> Figure<f64> {
    number_in(text, &["W", "w"]).and_then(|number| within(number, (0.0..=MOST_POWER_W).contains(&number)))
}

/// `858 MiB`, `858MB`, `858`, in bytes.
pub(crate) fn mebibytes(text: &str) -> Figure<u64> {
    let text = text.trim();
    let bare = ["MiB", "MB"].iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    integer(bare)?.checked_mul(MIB_BYTES).ok_or(AbsentWhy::Unreadable)
}

/// `858/65536 MiB`, `0 MiB/ 23374 MiB`, `114MiB / 32768MiB`: used and total, in bytes.
pub(crate) fn memory_pair(text: &str) -> Figure<(u64, u64)> {
    if let Some(why) = absent(text) {
        return Err(why);
    }
    let (used, total) = text.split_once('/').ok_or(AbsentWhy::Unreadable)?;
    Ok((mebibytes(used)?, mebibytes(total)?))
}

fn within(number: f64, is_possible: bool) -> Figure<f64> {
    if is_possible { Ok(number) } else { Err(AbsentWhy::Unreadable) }
}

/// Collects why readings are absent while a device is put together.
#[derive(Default)]
pub(crate) struct Absences(Vec<AbsentReading>);

impl Absences {
    /// The figure; when there is none, its reason is noted.
    pub(crate) fn take<T>(&mut self, reading: ReadingKind, figure: Figure<T>) -> Option<T> {
        figure.map_err(|why| self.0.push(AbsentReading { reading, why })).ok()
    }

    pub(crate) fn into_list(self) -> Vec<AbsentReading> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_with_and_without_their_unit() {
        assert_eq!([percent("37"), percent("37%"), percent(" 37 % ")], [Ok(37.0); 3]);
        assert_eq!([celsius("45C"), celsius("45 C"), celsius("45.0")], [Ok(45.0); 3]);
        assert_eq!([watts("106 W"), watts("106W"), watts("106")], [Ok(106.0); 3]);
        assert_eq!([mebibytes("2MiB"), mebibytes("2 MB"), mebibytes("2")], [Ok(2 * MIB_BYTES); 3]);
    }

    #[test]
    fn words_in_place_of_a_figure_tell_why_there_is_none() {
        for (word, why) in [
            ("N/A", AbsentWhy::NotAvailable),
            ("[N/A]", AbsentWhy::NotAvailable),
            ("NA", AbsentWhy::NotAvailable),
            ("-", AbsentWhy::NotAvailable),
            ("[Not Supported]", AbsentWhy::NotSupported),
            ("Requested functionality has been deprecated", AbsentWhy::NotSupported),
            ("[Insufficient Permissions]", AbsentWhy::Forbidden),
            ("ERR!", AbsentWhy::Failed),
            ("[Unknown Error]", AbsentWhy::Failed),
            ("[GPU requires reset]", AbsentWhy::Failed),
            ("", AbsentWhy::Unreadable),
            ("３７", AbsentWhy::Unreadable),
            ("٣٧", AbsentWhy::Unreadable),
            ("nan", AbsentWhy::Unreadable),
            ("inf", AbsentWhy::Unreadable),
            ("1e3", AbsentWhy::Unreadable),
        ] {
            assert_eq!((percent(word), celsius(word), watts(word)), (Err(why), Err(why), Err(why)), "{word}");
            assert_eq!(mebibytes(word), Err(why), "{word}");
        }
    }

    #[test]
    fn what_no_reading_can_be_is_none() {
        assert_eq!(percent("101"), Err(AbsentWhy::Unreadable));
        assert_eq!(percent("-1"), Err(AbsentWhy::Unreadable));
        assert_eq!(celsius("65535"), Err(AbsentWhy::Unreadable));
        assert_eq!(watts("-5"), Err(AbsentWhy::Unreadable));
        assert_eq!(mebibytes("99999999999999999999"), Err(AbsentWhy::Unreadable));
    }

    #[test]
    fn pairs_come_with_one_unit_or_two() {
        let expected = Ok((MIB_BYTES, 2 * MIB_BYTES));
        for text in ["1/2 MiB", "1 MiB/ 2 MiB", "1MiB / 2MiB", "1/2", " 1 MB / 2 MB "] {
            assert_eq!(memory_pair(text), expected, "{text}");
        }
        assert_eq!(memory_pair("N/A"), Err(AbsentWhy::NotAvailable));
        assert_eq!(memory_pair("N/A / N/A"), Err(AbsentWhy::Unreadable));
        assert_eq!(memory_pair("1"), Err(AbsentWhy::Unreadable));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_figure_or_none(text in "\\PC{0,40}") {
            proptest::prop_assert!(percent(&text).is_ok_and(f64::is_finite) || percent(&text).is_err());
            let _ = (celsius(&text), watts(&text), mebibytes(&text));
        }
    }
}
