//! What to do next, and the commands for it, folded away.

use crate::copy::CopyButton;
use crate::i18n::use_text;
use crate::reactive::{When, memo};
use leptos::prelude::*;

/// What to do next, and commands for it behind a line that unfolds them; nothing when there is nothing to do.
#[component]
pub fn NextStep(
    /// What to do.
    #[prop(into)]
    next_step: Signal<String>,
    /// Commands, one a line.
    #[prop(into)]
    lines: Signal<Vec<String>>,
) -> impl IntoView {
    let text = use_text();
    let all = Signal::derive(move || lines.read().join("\n"));
    let label = Signal::derive(move || text.get().workers.copy_commands.to_owned());
    let has_commands = memo(move || !lines.read().is_empty());
    let has_step = memo(move || !next_step.read().is_empty());
    view! {
        <When holds=move || has_step.get() && !has_commands.get()>
            <p class="next-step">{next_step}</p>
        </When>
        <When holds=move || has_commands.get()>
            <details class="commands">
                <summary>
                    <span class="next-step">{next_step}</span>
                    " "
                    <span class="unfold">{text.of(|m| m.workers.show_commands)}</span>
                </summary>
                <div class="commands-body">
                    <pre><code>{all}</code></pre>
                    <CopyButton text=all label/>
                </div>
            </details>
        </When>
    }
    .into_any()
}
