//! The cells of one line of an `npu-smi` table and the values in them.

use crate::{figures, text};

/// What a heading says of one value in the column under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Npu,
    Name,
    Chip,
    /// `Device` on Ascend 310 and 310P: the number that programs use.
    LogicId,
    /// `Phy-ID` on Atlas A3: the number on the host.
    PhysicalId,
    Health,
    BusId,
    PowerW,
    TemperatureC,
    UtilizationPercent,
    DdrMib,
    HbmMib,
    /// A value this version has no use for.
    OtherNumber,
    /// A used / total pair this version has no use for.
    OtherPair,
}

impl Field {
    fn is_pair(self) -> bool {
        matches!(self, Self::DdrMib | Self::HbmMib | Self::OtherPair)
    }

    fn is_text(self) -> bool {
        matches!(
            self,
            Self::Npu | Self::Name | Self::Chip | Self::LogicId | Self::PhysicalId | Self::Health | Self::BusId
        )
    }
}

/// Reads one heading cell, e.g. `NPU     Name` or `NPU Util(%) Memory-Usage(MB)  HBM-Usage(MB)`.
pub(super) fn heading_fields(cell: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    let lower = cell.to_lowercase();
    let mut words = lower.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if word == "npu" && words.next_if(|next| next.starts_with("util")).is_some() {
            fields.push(Field::UtilizationPercent);
            continue;
        }
        let field = heading_field(word);
        // `NPU ID`, `Chip ID`, `Phy ID`: the second word names no value of its own.
        if matches!(field, Field::Npu | Field::Chip | Field::PhysicalId | Field::BusId) {
            words.next_if_eq(&"id");
        }
        fields.push(field);
    }
    fields
}

fn heading_field(word: &str) -> Field {
    match word {
        "npu" => Field::Npu,
        "name" => Field::Name,
        "chip" => Field::Chip,
        "device" => Field::LogicId,
        "phy-id" | "phy" => Field::PhysicalId,
        "health" => Field::Health,
        "bus-id" | "bus" => Field::BusId,
        "power(w)" => Field::PowerW,
        "temp(c)" => Field::TemperatureC,
        // The unit is part of the match: a figure in a unit this version does not know is no figure.
        "aicore(%)" => Field::UtilizationPercent,
        "memory-usage(mb)" => Field::DdrMib,
        "hbm-usage(mb)" => Field::HbmMib,
        word if word.contains("usage") => Field::OtherPair,
        _ => Field::OtherNumber,
    }
}

/// One value of a cell. The tool writes `NA`, `N/A` or `-` for what it cannot tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Unknown,
    Word(String),
    Pair(Option<u64>, Option<u64>),
}

/// Gives each field of a column its value in `cell`. A field whose value cannot be told from its neighbours' is left
/// out: with a blank in place of a number the tool's layout does not say which of the numbers is absent.
pub(super) fn column_values(fields: &[Field], cell: &str) -> Vec<(Field, Value)> {
    if fields.iter().all(|field| field.is_text()) {
        return text_values(fields, cell);
    }
    let values = values(cell);
    if values.len() == fields.len() {
        return fields.iter().copied().zip(values).filter(|(field, value)| fits(*field, value)).collect();
    }
    [true, false].into_iter().flat_map(|pairs| values_of_kind(fields, &values, pairs)).collect()
}

fn fits(field: Field, value: &Value) -> bool {
    match value {
        Value::Unknown => true,
        Value::Word(_) => !field.is_pair(),
        Value::Pair(..) => field.is_pair(),
    }
}

/// The pairs alone, or the single values alone, where their number is that of the fields of that kind.
fn values_of_kind(fields: &[Field], values: &[Value], pairs: bool) -> Vec<(Field, Value)> {
    let fields: Vec<Field> = fields.iter().copied().filter(|field| field.is_pair() == pairs).collect();
    let is_wanted = |value: &&Value| matches!(value, Value::Pair(..)) == pairs;
    let values: Vec<Value> = values.iter().filter(is_wanted).cloned().collect();
    if fields.len() != values.len() {
        return Vec::new();
    }
    fields.into_iter().zip(values).collect()
}

/// One word for each field, and all remaining words for the last: names hold spaces.
fn text_values(fields: &[Field], cell: &str) -> Vec<(Field, Value)> {
    let words: Vec<&str> = cell.split_whitespace().collect();
    let last = fields.len().saturating_sub(1);
    let pick = |(position, &field): (usize, &Field)| {
        let words = words.get(position..)?;
        let words = if position == last { words } else { words.get(..1)? };
        let text = text::cell(&words.join(" "));
        let value = if is_unknown(&text) { Value::Unknown } else { Value::Word(text.clone()) };
        (!text.is_empty()).then_some((field, value))
    };
    fields.iter().enumerate().filter_map(pick).collect()
}

pub(super) fn is_unknown(word: &str) -> bool {
    matches!(word.to_ascii_lowercase().as_str(), "na" | "n/a" | "-" | "--" | "none")
}

/// Splits a cell such as `0    1867 / 15077   0 / 32768` into its values. The tool puts spaces around some slashes
/// and not around others.
fn values(cell: &str) -> Vec<Value> {
    let words = cell.split_whitespace().flat_map(split_at_slash);
    let mut values: Vec<Value> = Vec::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        if words.next_if_eq(&"/").is_some() {
            values.push(Value::Pair(number(word), words.next().and_then(number)));
        } else if is_unknown(word) {
            values.push(Value::Unknown);
        } else {
            values.push(Value::Word(word.to_owned()));
        }
    }
    values
}

fn split_at_slash(word: &str) -> Vec<&str> {
    if is_unknown(word) {
        return vec![word];
    }
    match word.split_once('/') {
        Some((before, after)) => [before, "/", after].into_iter().filter(|part| !part.is_empty()).collect(),
        None => vec![word],
    }
}

fn number(word: &str) -> Option<u64> {
    figures::integer(word).ok()
}

#[cfg(test)]
mod tests {
    use super::Field::{
        BusId, Chip, DdrMib, HbmMib, LogicId, Name, Npu, OtherPair, PhysicalId, PowerW, TemperatureC,
        UtilizationPercent,
    };
    use super::*;

    fn word(text: &str) -> Value {
        Value::Word(text.to_owned())
    }

    fn pair(used: u64, total: u64) -> Value {
        Value::Pair(Some(used), Some(total))
    }

    #[test]
    fn headings_of_every_known_layout_are_read() {
        let cases: [(&str, &[Field]); 8] = [
            ("NPU     Name", &[Npu, Name]),
            ("NPU ID", &[Npu]),
            ("Chip  Phy-ID", &[Chip, PhysicalId]),
            ("Chip    Device", &[Chip, LogicId]),
            ("Bus-Id", &[BusId]),
            ("Power(W)    Temp(C)           Hugepages-Usage(page)", &[PowerW, TemperatureC, OtherPair]),
            ("AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)", &[UtilizationPercent, DdrMib, HbmMib]),
            ("NPU Util(%) Memory-Usage(MB)  HBM-Usage(MB)", &[UtilizationPercent, DdrMib, HbmMib]),
        ];
        for (cell, fields) in cases {
            assert_eq!(heading_fields(cell), fields, "{cell}");
        }
    }

    #[test]
    fn slashes_with_and_without_spaces_make_pairs() {
        for cell in ["1867 / 15077", "1867/15077", "1867/ 15077", "1867 /15077", "1867     / 15077"] {
            assert_eq!(values(cell), [pair(1_867, 15_077)], "{cell}");
        }
    }

    #[test]
    fn words_for_unknown_stand_for_single_values_and_pairs() {
        let fields = [UtilizationPercent, DdrMib, HbmMib];
        for unknown in ["NA", "N/A", "-"] {
            let cell = format!("{unknown}  {unknown}  3410 / 65536");
            let expected =
                [(UtilizationPercent, Value::Unknown), (DdrMib, Value::Unknown), (HbmMib, pair(3_410, 65_536))];
            assert_eq!(column_values(&fields, &cell), expected, "{unknown}");
        }
    }

    #[test]
    fn a_blank_number_makes_only_its_own_kind_unknown() {
        let fields = [PowerW, TemperatureC, OtherPair];
        assert_eq!(column_values(&fields, "            43                15   / 15"), [(OtherPair, pair(15, 15))]);
    }

    #[test]
    fn a_blank_pair_leaves_single_values_known() {
        let fields = [UtilizationPercent, DdrMib, HbmMib];
        assert_eq!(column_values(&fields, "7           0    / 32768"), [(UtilizationPercent, word("7"))]);
    }

    #[test]
    fn the_last_name_takes_all_remaining_words() {
        let values = column_values(&[Npu, Name], "0     Ascend 910 Premium");
        assert_eq!(values, [(Npu, word("0")), (Name, word("Ascend 910 Premium"))]);
    }

    proptest::proptest! {
        #[test]
        fn any_cell_under_any_heading_is_read_without_a_panic(heading in "\\PC{0,60}", cell in "\\PC{0,60}") {
            let _ = column_values(&heading_fields(&heading), &cell);
        }
    }
}
