//! Pages as GPUStack 0.7 cuts them.

use crate::server::error::ApiError;
use api::{Page, Pagination};
use serde::Deserialize;

/// The most rows of a page, and how many it has when nobody says.
const PER_PAGE_MAX: u32 = 100;

/// Which page of a list.
#[derive(Clone, Copy, Debug)]
pub struct PageWish {
    page: u32,
    per_page: u32,
}

/// A number of the query; a text that is none is told apart from an absent one.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct PageQuery {
    page: Option<String>,
    #[serde(rename = "perPage")]
    per_page: Option<String>,
}

impl PageQuery {
    /// The wish, when it can be met.
    pub fn wish(&self) -> Result<PageWish, ApiError> {
        let page = number("page", self.page.as_deref(), 1, u32::MAX)?;
        let per_page = number("perPage", self.per_page.as_deref(), PER_PAGE_MAX, PER_PAGE_MAX)?;
        Ok(PageWish { page, per_page })
    }
}

fn number(name: &str, text: Option<&str>, absent: u32, most: u32) -> Result<u32, ApiError> {
    let Some(text) = text else { return Ok(absent) };
    let parsed = text.parse().ok().filter(|number| (1..=most).contains(number));
    parsed.ok_or_else(|| ApiError::invalid(format!("{name}: must be a whole number from 1 to {most}")))
}

impl PageWish {
    /// Cuts the page out of all rows; only its own rows are made.
    pub fn cut<Row, T>(self, rows: impl ExactSizeIterator<Item = Row>, make: impl FnMut(Row) -> T) -> Page<T> {
        let total = rows.len();
        let per_page = usize::try_from(self.per_page).unwrap_or(usize::MAX);
        let before = usize::try_from(self.page - 1).unwrap_or(usize::MAX).saturating_mul(per_page);
        let items = rows.skip(before).take(per_page).map(make).collect();
        let pagination = Pagination {
            page: self.page,
            per_page: self.per_page,
            total: u64::try_from(total).unwrap_or(u64::MAX),
            total_page: u32::try_from(total.div_ceil(per_page)).unwrap_or(u32::MAX),
        };
        Page { items, pagination }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(page: Option<&str>, per_page: Option<&str>) -> PageQuery {
        PageQuery { page: page.map(str::to_owned), per_page: per_page.map(str::to_owned) }
    }

    #[test]
    fn a_page_beyond_the_end_is_empty_and_an_empty_list_has_none() {
        let cut = |page: &str, rows: usize| query(Some(page), Some("2")).wish().unwrap().cut(0..rows, |row| row);
        assert_eq!(cut("1", 3).items, [0, 1]);
        assert_eq!(cut("2", 3).items, [2]);
        assert_eq!((cut("3", 3).items.len(), cut("3", 3).pagination.total_page), (0, 2));
        assert_eq!((cut("1", 0).pagination.total, cut("1", 0).pagination.total_page), (0, 0));
        assert!(cut("4294967295", 3).items.is_empty());
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for (page, per_page) in [("0", "1"), ("1", "0"), ("1", "101"), ("-1", "1"), ("x", "1"), ("1", "")] {
            assert!(query(Some(page), Some(per_page)).wish().is_err(), "{page} {per_page}");
        }
        assert!(query(None, None).wish().is_ok());
    }
}
