//! Enums that travel as a name and parameters, read in few words of code: what serde derives for so many variants is ten
//! times as much, and the browser has to load it.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as TextError, StrDeserializer};
use serde_json::{Map, Value};

/// Parameters by name.
pub type Parameters = Map<String, Value>;

/// Defines an enum, and from the same words how it is read: each parameter by its name.
macro_rules! read_by_name {
    (
        $(#[$about_all:meta])*
        pub enum $name:ident {
            $($(#[$about:meta])* $variant:ident { $($(#[$about_parameter:meta])* $parameter:ident: $kind:ty),* $(,)? }),* $(,)?
        }
    ) => {
        $(#[$about_all])*
        pub enum $name {
            $($(#[$about])* $variant { $($(#[$about_parameter])* $parameter: $kind),* }),*
        }

        /// Which variant, without its parameters.
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Tag {
            $($variant),*
        }

        impl $name {
            /// Reads the variant with this name; parameters that it does not have are passed over.
            pub(crate) fn read(
                tag: &str,
                parameters: &mut crate::tagged::Parameters,
            ) -> Result<Self, crate::tagged::Unreadable> {
                use crate::tagged::{Unreadable, take, word};

                match word(tag).ok_or(Unreadable::Name)? {
                    $(Tag::$variant => Ok(Self::$variant { $($parameter: take(parameters, stringify!($parameter))?),* })),*
                }
            }

            #[cfg(test)]
            fn examples() -> Vec<Self> {
                use crate::tagged::tests::Example;

                vec![$(Self::$variant { $($parameter: Example::example()),* }),*]
            }
        }
    };
}

pub(crate) use read_by_name;

/// Why something is no variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// No variant has this name, or there is none.
    #[error("its name is missing or not known")]
    Name,
    /// A parameter is not there or of another kind.
    #[error("parameter `{0}` is missing or of another kind")]
    Parameter(&'static str),
}

/// What a parameter may be.
pub trait Parameter: Sized {
    /// Reads it; what is absent reads like `null`.
    fn read(value: Value) -> Option<Self>;
}

/// Takes a parameter out.
pub fn take<T: Parameter>(parameters: &mut Parameters, name: &'static str) -> Result<T, Unreadable> {
    T::read(parameters.remove(name).unwrap_or_default()).ok_or(Unreadable::Parameter(name))
}

/// A variant without parameters, by its name.
pub fn word<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
    let text: StrDeserializer<'de, TextError> = text.into_deserializer();
    T::deserialize(text).ok()
}

macro_rules! parameters {
    ($($kind:ty: $read:expr),* $(,)?) => {
        $(impl Parameter for $kind {
            fn read(value: Value) -> Option<Self> {
                let read: fn(Value) -> Option<Self> = $read;
                read(value)
            }
        })*
    };
}

parameters! {
    u16: |value| value.as_u64()?.try_into().ok(),
    u32: |value| value.as_u64()?.try_into().ok(),
    u64: |value| value.as_u64(),
    i32: |value| value.as_i64()?.try_into().ok(),
    i64: |value| value.as_i64(),
    f64: |value| value.as_f64(),
    String: |value| if let Value::String(text) = value { Some(text) } else { None },
    Vec<String>: |value| match value {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.into_iter().map(String::read).collect(),
        _ => None,
    },
    crate::Severity: |value| word(value.as_str()?),
    crate::WorkerState: |value| word(value.as_str()?),
    crate::LinkCarrier: |value| word(value.as_str()?),
    crate::LinkLoss: |value| word(value.as_str()?),
    crate::DriverInitCause: |value| word(value.as_str()?),
    crate::Reason: |value| if let Value::Object(written) = value { crate::reason::read(written).ok() } else { None },
}

impl<T: Parameter> Parameter for Option<T> {
    fn read(value: Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::read(value).map(Some) }
    }
}

#[cfg(test)]
pub mod tests {
    use crate::{DriverInitCause, LinkCarrier, LinkLoss, Reason, Severity, WorkerState};

    /// Makes up a parameter of any kind.
    pub trait Example {
        /// One.
        fn example() -> Self;
    }

    macro_rules! examples {
        ($($kind:ty: $example:expr),* $(,)?) => {
            $(impl Example for $kind {
                fn example() -> Self {
                    $example
                }
            })*
        };
    }

    examples! {
        f64: 0.75,
        i32: -8005,
        i64: -187_000,
        u32: 8,
        u64: 60,
        String: "words \"quoted\" 与汉字".to_owned(),
        Vec<String>: vec!["/dev/davinci_manager".to_owned(), "/dev/hisi_hdc".to_owned()],
        Option<i32>: Some(-1),
        Option<u32>: Some(2),
        Option<String>: Some("25.5.1".to_owned()),
        Option<i64>: Some(1_700_000_000_000),
        Option<u16>: Some(502),
        Option<DriverInitCause>: Some(DriverInitCause::NotAllowed),
        Severity: Severity::Warning,
        WorkerState: WorkerState::NotReady,
        LinkCarrier: LinkCarrier::WebSocket,
        LinkLoss: LinkLoss::Silent,
        Option<f64>: Some(0.75),
        Reason: Reason::ToolMissing { tool: "npu-smi".to_owned() },
        Option<Reason>: Some(Reason::example()),
    }
}
