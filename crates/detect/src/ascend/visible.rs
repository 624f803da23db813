//! The variables that choose chips. `ASCEND_VISIBLE_DEVICES` is read by the container runtime and holds numbers of the
//! host, or names with them; `ASCEND_RT_VISIBLE_DEVICES` is read by programs and holds places among the chips that are
//! visible here. What is out of range is dropped by both without a word.

use api::{GpuDevice, Reason};
use std::collections::BTreeSet;

/// Chooses on the host, for the container runtime.
const OF_RUNTIME: &str = "ASCEND_VISIBLE_DEVICES";
/// Chooses here, for programs.
const OF_PROGRAMS: &str = "ASCEND_RT_VISIBLE_DEVICES";
/// Both.
pub(super) const VARIABLES: [&str; 2] = [OF_RUNTIME, OF_PROGRAMS];
/// A range that is wider than any host is a slip of the pen.
const MOST_CHIPS: u32 = 4_096;

/// What a variable chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    All,
    Nothing,
    Numbers(BTreeSet<u32>),
    Unreadable,
}

/// Forms: `0,1`, `0-3`, `0-3,7`, `all`, `void`, `none`, nothing at all, `Ascend910-0,Ascend910-1`.
fn parse(value: &str) -> Choice {
    let value = value.trim();
    match value.to_ascii_lowercase().as_str() {
        "all" => return Choice::All,
        "" | "void" | "none" => return Choice::Nothing,
        _ => {}
    }
    let mut numbers = BTreeSet::new();
    for item in value.split(',').map(str::trim) {
        let Some(range) = range(item) else { return Choice::Unreadable };
        numbers.extend(range);
    }
    Choice::Numbers(numbers)
}

fn range(item: &str) -> Option<std::ops::RangeInclusive<u32>> {
    if let Some(number) = number(item) {
        return Some(number..=number);
    }
    let (from, to) = item.rsplit_once('-')?;
    let to = number(to)?;
    // `Ascend910-3` names the chip 3 of a kind; `0-3` is a range.
    let from = if from.starts_with(|c: char| c.is_ascii_alphabetic()) { to } else { number(from)? };
    (from <= to && to - from < MOST_CHIPS).then_some(from..=to)
}

fn number(text: &str) -> Option<u32> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// The variables that do not fit the devices.
pub(super) fn misfits<'a>(variable: impl Fn(&str) -> Option<&'a str>, devices: &[GpuDevice]) -> Vec<Reason> {
    let on_host: Option<BTreeSet<u32>> = devices.iter().map(|device| device.physical_index).collect();
    let here = devices.iter().map(|device| device.index).collect();
    let candidates = [(OF_RUNTIME, on_host), (OF_PROGRAMS, Some(here))];
    let misfit = |(name, there): (&str, Option<BTreeSet<u32>>)| {
        let value = variable(name)?;
        let fits = match parse(value) {
            Choice::All | Choice::Nothing => true,
            Choice::Numbers(chosen) => there.is_none_or(|there| chosen.is_subset(&there)),
            Choice::Unreadable => false,
        };
        (!fits).then(|| Reason::VisibleDevicesWrong {
            variable: name.to_owned(),
            value: crate::text::cell(value),
            available: u32::try_from(devices.len()).unwrap_or(u32::MAX),
        })
    };
    candidates.into_iter().filter_map(misfit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: &[u32]) -> Choice {
        Choice::Numbers(numbers.iter().copied().collect())
    }

    #[test]
    fn every_form_is_read() {
        for (value, choice) in [
            ("0", numbers(&[0])),
            ("0,1", numbers(&[0, 1])),
            (" 0 , 1 ", numbers(&[0, 1])),
            ("0-3", numbers(&[0, 1, 2, 3])),
            ("0-1,7", numbers(&[0, 1, 7])),
            ("all", Choice::All),
            ("ALL", Choice::All),
            ("void", Choice::Nothing),
            ("none", Choice::Nothing),
            ("", Choice::Nothing),
            ("Ascend910-0,Ascend910-1", numbers(&[0, 1])),
            ("3-0", Choice::Unreadable),
            ("0,", Choice::Unreadable),
            ("0;1", Choice::Unreadable),
            ("-1", Choice::Unreadable),
            ("０", Choice::Unreadable),
            ("0-4294967295", Choice::Unreadable),
            ("99999999999", Choice::Unreadable),
        ] {
            assert_eq!(parse(value), choice, "{value}");
        }
    }

    fn devices(physical: &[u32]) -> Vec<GpuDevice> {
        let device = |(index, &physical)| GpuDevice {
            index: u32::try_from(index).unwrap(),
            physical_index: Some(physical),
            ..GpuDevice::default()
        };
        physical.iter().enumerate().map(device).collect()
    }

    fn wrong(of_runtime: Option<&str>, of_programs: Option<&str>, devices: &[GpuDevice]) -> Vec<String> {
        let variable = |name: &str| if name == OF_RUNTIME { of_runtime } else { of_programs };
        let name = |reason| match reason {
            Reason::VisibleDevicesWrong { variable, .. } => variable,
            other => panic!("{other:?}"),
        };
        misfits(variable, devices).into_iter().map(name).collect()
    }

    #[test]
    fn the_runtime_chooses_by_the_hosts_numbers_and_programs_by_places() {
        let four_to_seven = devices(&[4, 5, 6, 7]);
        assert_eq!(wrong(Some("4-7"), Some("0,3"), &four_to_seven), [""; 0]);
        assert_eq!(wrong(Some("0-3"), Some("4"), &four_to_seven), [OF_RUNTIME, OF_PROGRAMS]);
        assert_eq!(wrong(Some("4,5"), None, &four_to_seven), [""; 0]);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_what_is_not_set_is_not() {
        assert_eq!(wrong(Some("npu0"), None, &devices(&[0])), [OF_RUNTIME]);
        assert_eq!(wrong(None, None, &devices(&[0])), [""; 0]);
    }

    #[test]
    fn without_the_hosts_numbers_the_runtimes_choice_is_not_judged() {
        let unknown = vec![GpuDevice::default()];
        assert_eq!(wrong(Some("6"), None, &unknown), [""; 0]);
        assert_eq!(wrong(Some("6"), None, &[]), [OF_RUNTIME]);
    }

    proptest::proptest! {
        #[test]
        fn any_value_is_read_in_bounded_memory(value in "([0-9]{1,11}|[-, ]|all|void|\\PC){0,30}") {
            if let Choice::Numbers(numbers) = parse(&value) {
                proptest::prop_assert!(numbers.len() <= 31 * 4_096);
            }
        }
    }
}
