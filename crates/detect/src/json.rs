//! JSON of vendors' tools, whose shape changes from release to release: a figure is a number, a text with or without a
//! unit, or an object of a value and a unit; keys have blanks at their ends.

use crate::figures::{self, Figure, MIB_BYTES};
use api::AbsentWhy;
use serde_json::{Map, Value};

/// The tools print warnings around their JSON: it begins at the first brace or bracket that makes it whole.
pub(crate) fn parse(printed: &str) -> Option<Value> {
    let begins = printed.match_indices(['{', '[']).map(|(at, _)| at).take(8);
    begins
        .filter_map(|at| printed.get(at..))
        .find_map(first_value)
        .filter(|value| value.is_object() || value.is_array())
}

/// Whatever follows the first whole value is passed over.
fn first_value(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()
}

/// The member with that name, in whatever case and with whatever blanks at its ends.
pub(crate) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let object: &Map<String, Value> = object.as_object()?;
    object
        .get(name)
        .or_else(|| object.iter().find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

/// The member at the end of a way through objects.
pub(crate) fn at<'a>(value: &'a Value, way: &[&str]) -> Option<&'a Value> {
    way.iter().try_fold(value, |value, name| member(value, name))
}

/// A text, or a number as text; None for words that stand for an absent one.
pub(crate) fn word(value: Option<&Value>) -> Option<String> {
    let text = text(value?)?;
    let text = crate::text::cell(&text);
    (!text.is_empty() && figures::absent(&text).is_none()).then_some(text)
}

/// A figure, read by `read` from its text.
pub(crate) fn figure(value: Option<&Value>, read: fn(&str) -> Figure<f64>) -> Figure<f64> {
    let value = value.ok_or(AbsentWhy::NotTold)?;
    read(&text(value).ok_or(AbsentWhy::Unreadable)?)
}

/// A size with its unit, in bytes; mebibytes when there is no unit.
pub(crate) fn bytes(value: Option<&Value>) -> Figure<u64> {
    let value = value.ok_or(AbsentWhy::NotTold)?;
    let size = text(value).ok_or(AbsentWhy::Unreadable)?;
    match member(value, "unit").and_then(Value::as_str) {
        Some("GB" | "GiB") => figures::integer(&size)?.checked_mul(1024 * MIB_BYTES).ok_or(AbsentWhy::Unreadable),
        Some("B") => figures::integer(&size),
        Some("MB" | "MiB") | None => figures::mebibytes(&size),
        Some(_) => Err(AbsentWhy::Unreadable),
    }
}

/// The text of a plain value, or of the value in an object of value and unit.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(_) => text(member(value, "value")?),
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_among_other_lines() {
        for printed in [
            r#"{"a": 1}"#,
            "WARNING: [old] driver\n{\"a\": 1}\n",
            "{\"a\": 1}\nWARNING: done",
            "{ not this\n{\"a\": 1}",
        ] {
            let value = parse(printed).unwrap();
            assert!(value == json!({"a": 1}) || value.is_array(), "{printed}: {value}");
        }
        for printed in ["", "no json", "{\"a\": ", "1", "\"a\""] {
            assert_eq!(parse(printed), None, "{printed}");
        }
    }

    #[test]
    fn figures_come_in_all_shapes() {
        for value in [json!(37), json!(37.0), json!("37"), json!("37%"), json!({"value": 37, "unit": "%"})] {
            assert_eq!(figure(Some(&value), figures::percent), Ok(37.0), "{value}");
        }
        assert_eq!(figure(Some(&json!("N/A")), figures::percent), Err(AbsentWhy::NotAvailable));
        assert_eq!(figure(Some(&json!(["N/A"])), figures::percent), Err(AbsentWhy::Unreadable));
        assert_eq!(figure(None, figures::percent), Err(AbsentWhy::NotTold));
    }

    #[test]
    fn sizes_have_their_unit() {
        assert_eq!(bytes(Some(&json!({"value": 2, "unit": "MB"}))), Ok(2 * MIB_BYTES));
        assert_eq!(bytes(Some(&json!({"value": 2, "unit": "GB"}))), Ok(2048 * MIB_BYTES));
        assert_eq!(bytes(Some(&json!("2MiB"))), Ok(2 * MIB_BYTES));
        assert_eq!(bytes(Some(&json!({"value": 2, "unit": "pages"}))), Err(AbsentWhy::Unreadable));
    }

    #[test]
    fn a_key_may_have_blanks_at_its_end() {
        let value = json!({"Power Readings": {"Power Draw ": "96.66W"}});
        assert_eq!(word(at(&value, &["Power Readings", "Power Draw"])).as_deref(), Some("96.66W"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "([{}\\[\\],:\"]|value|unit|[0-9]{1,3}|\\PC){0,60}") {
            if let Some(value) = parse(&text) {
                let _ = (bytes(Some(&value)), word(Some(&value)), member(&value, "a"));
            }
        }
    }
}
