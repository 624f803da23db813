//! What only a browser can do. On the server each of these does nothing or answers "unknown".

use leptos::prelude::{document, on_cleanup, set_interval_with_handle};
use std::time::Duration;

/// An attribute of `<html>`.
pub fn html_attribute(name: &str) -> Option<String> {
    #[cfg(feature = "hydrate")]
    return leptos::prelude::document().document_element()?.get_attribute(name);
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = name;
        None
    }
}

/// Sets an attribute of `<html>`.
pub fn set_html_attribute(name: &str, value: &str) {
    #[cfg(feature = "hydrate")]
    if let Some(root) = leptos::prelude::document().document_element() {
        // It fails for invalid names only, and ours are literals.
        let _ = root.set_attribute(name, value);
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = (name, value);
}

/// Keeps a choice for a year, for the server to see at the next request. `value` must need no escaping.
pub fn set_cookie(name: &str, value: &str) {
    #[cfg(feature = "hydrate")]
    {
        use wasm_bindgen::JsCast;
        if let Some(document) = leptos::prelude::document().dyn_ref::<web_sys::HtmlDocument>() {
            // A browser that refuses cookies goes on with the choice until the next load.
            let _ = document.set_cookie(&crate::preferences::cookie(name, value));
        }
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = (name, value);
}

/// How far the browser's zone is ahead of UTC at this moment, in minutes; None on the server.
pub fn zone_offset_minutes(time_ms: i64) -> Option<i32> {
    #[cfg(feature = "hydrate")]
    {
        let date = js_sys::Date::new(&wasm_bindgen::JsValue::from_f64(time_ms as f64));
        #[expect(clippy::cast_possible_truncation, reason = "an offset is at most a day of minutes")]
        Some(-(date.get_timezone_offset() as i32))
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = time_ms;
        None
    }
}

/// Milliseconds of the browser's monotonic clock; None on the server.
pub fn monotonic_ms() -> Option<f64> {
    #[cfg(feature = "hydrate")]
    return Some(leptos::prelude::window().performance()?.now());
    #[cfg(not(feature = "hydrate"))]
    None
}

/// Loads a page afresh, for a session that has ended.
pub fn open_page(path: &str) {
    #[cfg(feature = "hydrate")]
    {
        // It fails for unparsable addresses only.
        let _ = leptos::prelude::window().location().assign(path);
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = path;
}

/// Path and query of the page that is open.
pub fn visited_page() -> String {
    #[cfg(feature = "hydrate")]
    {
        let location = leptos::prelude::window().location();
        format!("{}{}", location.pathname().unwrap_or_default(), location.search().unwrap_or_default())
    }
    #[cfg(not(feature = "hydrate"))]
    String::new()
}

/// Remembers with this entry of the browser's history how far the page is scrolled.
pub fn remember_scroll() {
    #[cfg(feature = "hydrate")]
    {
        let window = leptos::prelude::window();
        if let (Ok(history), Ok(top)) = (window.history(), window.scroll_y()) {
            // It fails for who scrolls a hundred times within half a minute, and remembers an earlier place then.
            let _ = history.replace_state(&wasm_bindgen::JsValue::from_f64(top), "");
        }
    }
}

/// What [`remember_scroll`] kept of the entry that is open, in CSS pixels.
pub fn remembered_scroll() -> Option<f64> {
    #[cfg(feature = "hydrate")]
    return leptos::prelude::window().history().ok()?.state().ok()?.as_f64();
    #[cfg(not(feature = "hydrate"))]
    None
}

/// Scrolls the page, in CSS pixels.
pub fn scroll_to(top: f64) {
    #[cfg(feature = "hydrate")]
    leptos::prelude::window().scroll_to_with_x_and_y(0.0, top);
    #[cfg(not(feature = "hydrate"))]
    let _ = top;
}

/// Sets a length in the style of an element. Styles set by a script need no leave in the content security policy.
pub fn set_pixels(element: &web_sys::HtmlElement, property: &str, pixels: f64) {
    // It fails for malformed values only.
    let _ = element.style().set_property(property, &format!("{}px", crate::format::whole(pixels)));
}

/// Does something again and again while the page is looked at, until the part of it that asks for this goes.
pub fn while_visible(every: Duration, run: impl Fn() + Copy + 'static) {
    let run_when_visible = move || {
        if document().visibility_state() == web_sys::VisibilityState::Visible {
            run();
        }
    };
    crate::reactive::effect(move || {
        if let Ok(interval) = set_interval_with_handle(run_when_visible, every) {
            on_cleanup(move || interval.clear());
        }
    });
}

/// Reads a decimal number. The browser's own way saves it the tables of Rust's.
pub fn float(text: &str) -> Option<f64> {
    #[cfg(feature = "hydrate")]
    return Some(js_sys::parse_float(text)).filter(|number| !number.is_nan());
    #[cfg(not(feature = "hydrate"))]
    text.parse().ok()
}
