//! Commands to copy, folded away.

use crate::copy::CopyButton;
use crate::i18n::use_text;
use leptos::prelude::*;

/// Commands, one a line, behind a line that unfolds them; nothing when there are none.
#[component]
pub fn Commands(
    /// The lines.
    #[prop(into)]
    lines: Signal<Vec<String>>,
) -> impl IntoView {
    let text = use_text();
    let all = Signal::derive(move || lines.read().join("\n"));
    let label = Signal::derive(move || text.get().workers.copy_commands.to_owned());
    view! {
        <Show when=move || !lines.read().is_empty()>
            <details class="commands">
                <summary>{text.of(|m| m.workers.show_commands)}</summary>
                <div class="commands-body">
                    <pre><code>{all}</code></pre>
                    <CopyButton text=all label/>
                </div>
            </details>
        </Show>
    }
    .into_any()
}
