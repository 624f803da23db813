//! Settings: the join token, the password, language and theme, and what this server is.

mod password;
mod password_answer;

use crate::ask::page_data;
use crate::copy::CopyButton;
use crate::frame::PageTitle;
use crate::i18n::{Language, use_text};
use crate::icon::Icon;
use crate::model::JoinInfo;
use crate::pages::Failure;
use crate::paths;
use crate::preferences::{SetLanguage, SetTheme, Theme, ThemeChoice, choose_language, choose_theme};
use crate::session::UiError;
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos::server_fn::codec::Json;
use password::PasswordForm;
pub use password::PasswordPage;

/// Where a server in a container keeps the join token.
const CONTAINER_TOKEN_FILE: &str = "/var/lib/gpustack/token";
/// Prints it when the server runs in a container named as in the operating guide.
const TOKEN_COMMAND: &str = "docker exec -it gpustack cat /var/lib/gpustack/token";

/// The join token, and what this server is.
#[server(input = Json, endpoint = "server_info")]
async fn server_info() -> Result<JoinInfo, UiError> {
    let authorised = crate::session::authorised().await?;
    Ok(authorised.backend.join_info(&authorised.request).await)
}

/// Settings.
#[component]
pub fn SettingsPage() -> impl IntoView {
    let text = use_text();
    let info = page_data(|| ServerInfo {});
    view! {
        <PageTitle name=|m| m.settings.title/>
        <div class="settings">
            <h1>{text.of(|m| m.settings.title)}</h1>
            {info.show(move |info| match info {
                Ok(info) => view! { <Sections info/> }.into_any(),
                Err(error) => view! { <Failure error/> }.into_any(),
            })}
        </div>
    }
    .into_any()
}

#[component]
fn Sections(info: JoinInfo) -> impl IntoView {
    let text = use_text();
    let JoinInfo { server_url, token, token_file, version, .. } = info;
    view! {
        <section class="panel settings-part">
            <h2>{text.of(|m| m.settings.token)}</h2>
            <Token token token_file/>
        </section>
        <section class="panel settings-part">
            <h2>{text.of(|m| m.settings.password)}</h2>
            <PasswordForm/>
        </section>
        <section class="panel settings-part">
            <h2>{text.of(|m| m.settings.appearance)}</h2>
            <Appearance/>
        </section>
        <section class="panel settings-part">
            <h2>{text.of(|m| m.settings.about)}</h2>
            <dl class="settings-facts">
                <dt>{text.of(|m| m.settings.version)}</dt>
                <dd class="mono">"gpustack " {version}</dd>
                <dt>{text.of(|m| m.settings.address)}</dt>
                <dd class="mono">{server_url}</dd>
                <dt>{text.of(|m| m.settings.api)}</dt>
                // not a page of this UI
                <dd><a href="/openapi.json" rel="external" class="mono">"/openapi.json"</a></dd>
            </dl>
        </section>
    }
    .into_any()
}

/// The join token, hidden until asked for: screens are shared and photographed.
#[component]
fn Token(token: String, token_file: Option<String>) -> impl IntoView {
    let text = use_text();
    let mask = "•".repeat(token.chars().count().clamp(8, 32));
    view! {
        <p class="muted">{text.of(|m| m.settings.token_text)}</p>
        <div class="token">
            <details class="token-details">
                <summary class="token-summary">
                    <span class="token-mask mono" role="img" aria-label=text.of(|m| m.settings.token_hidden)>{mask}</span>
                    <span class="button token-reveal">{text.of(|m| m.settings.reveal)}</span>
                    <span class="button token-hide">{text.of(|m| m.settings.hide)}</span>
                </summary>
                <code class="token-value" id="join-token">{token.clone()}</code>
            </details>
            <CopyButton text=token/>
        </div>
        {token_file
            .map(|file| {
                let may_be_in_container = file == CONTAINER_TOKEN_FILE;
                view! {
                    <dl class="token-facts">
                        <dt>{text.of(|m| m.settings.token_file)}</dt>
                        <dd><code>{file}</code></dd>
                        {may_be_in_container
                            .then(|| {
                                view! {
                                    <dt>{text.of(|m| m.settings.token_command)}</dt>
                                    <dd><code>{TOKEN_COMMAND}</code></dd>
                                }.into_any()
                            })}
                    </dl>
                }.into_any()
            })}
        <p><a href=paths::ADD_WORKER>{Icon::Add.view()} " " {text.of(|m| m.settings.to_add_worker)}</a></p>
    }.into_any()
}

/// Language and theme. Each option is a plain form, so that it works without JavaScript too.
#[component]
fn Appearance() -> impl IntoView {
    let text = use_text();
    let choice = use_context::<ThemeChoice>().unwrap_or_else(|| ThemeChoice(RwSignal::new(Theme::System)));
    let language_option = move |language: Language| {
        view! {
            <form
                method="post"
                action=SetLanguage::url()
                on:submit=move |event| {
                    event.prevent_default();
                    choose_language(text, language);
                }
            >
                <input type="hidden" name="language" value=language.tag()/>
                <button
                    class="segment"
                    lang=language.tag()
                    aria-pressed=move || (text.language() == language).to_string()
                >
                    {language.own_name()}
                </button>
            </form>
        }
        .into_any()
    };
    let theme_option = move |theme: Theme| {
        let name = move || {
            let frame = &text.get().frame;
            match theme {
                Theme::System => frame.theme_system,
                Theme::Light => frame.theme_light,
                Theme::Dark => frame.theme_dark,
            }
        };
        view! {
            <form
                method="post"
                action=SetTheme::url()
                on:submit=move |event| {
                    event.prevent_default();
                    choose_theme(choice, theme);
                }
            >
                <input type="hidden" name="theme" value=theme.tag()/>
                <button class="segment" aria-pressed=move || (choice.0.get() == theme).to_string()>{name}</button>
            </form>
        }
        .into_any()
    };
    view! {
        <div class="settings-choices">
            <div class="segments" role="group" aria-label=text.of(|m| m.frame.language)>
                {Language::ALL.map(language_option).collect_view()}
            </div>
            <div class="segments" role="group" aria-label=text.of(|m| m.frame.theme)>
                {Theme::ALL.map(theme_option).collect_view()}
            </div>
        </div>
    }
    .into_any()
}
