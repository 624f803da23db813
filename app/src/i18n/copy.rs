//! Texts of the button that copies.

/// Texts of the button that copies.
#[derive(Debug)]
pub struct CopyMessages {
    /// The button.
    pub copy: &'static str,
    /// It was copied.
    pub copied: &'static str,
    /// The browser did not let it be copied; the text is selected.
    pub press_keys: &'static str,
    /// Label of the field that holds the selected text.
    pub selected_text: &'static str,
}

/// English.
pub const EN: CopyMessages = CopyMessages {
    copy: "Copy",
    copied: "Copied",
    press_keys: "The browser does not allow copying here. The text is selected: press Ctrl+C (⌘C on a Mac).",
    selected_text: "Text to copy",
};

/// Simplified Chinese.
pub const ZH: CopyMessages = CopyMessages {
    copy: "复制",
    copied: "已复制",
    press_keys: "浏览器不允许在此自动复制。文本已选中，请按 Ctrl+C（Mac 上按 ⌘C）。",
    selected_text: "待复制的文本",
};
