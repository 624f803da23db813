use serde::{Deserialize, Serialize};

/// One page of a list, as GPUStack answers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The rows, newest first.
    pub items: Vec<T>,
    /// Where this page lies.
    pub pagination: Pagination,
}

/// Where a page lies in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// Counted from 1.
    pub page: u32,
    /// Rows a page, 1 to 100.
    pub per_page: u32,
    /// Rows in all.
    pub total: u64,
    /// Pages in all.
    pub total_page: u32,
}

/// One event of a `watch=true` stream: a JSON object followed by two newlines (not server-sent events).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchEvent<T> {
    /// What happened.
    #[serde(rename = "type")]
    pub kind: WatchEventType,
    /// The whole object.
    pub data: T,
}

/// What happened to a watched object; numbers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum WatchEventType {
    /// 1: it is new, or was there when the stream began.
    Created,
    /// 2: it changed.
    Updated,
    /// 3: it is gone.
    Deleted,
}

impl From<WatchEventType> for u8 {
    fn from(kind: WatchEventType) -> Self {
        match kind {
            WatchEventType::Created => 1,
            WatchEventType::Updated => 2,
            WatchEventType::Deleted => 3,
        }
    }
}

impl TryFrom<u8> for WatchEventType {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            1 => Ok(Self::Created),
            2 => Ok(Self::Updated),
            3 => Ok(Self::Deleted),
            other => Err(format!("no watch event has the number {other}")),
        }
    }
}
