//! Keeps the fleet current: one snapshot, then the event stream; again after a break, with growing pauses. The server is
//! told at which workers the page looks, and tells everything about those.

use crate::ask::ask;
use crate::exchange::{Body, Reply, exchange};
use crate::fleet::Fleet;
use crate::fleet::ask::AskTroubled;
use crate::fleet::sync::{Step, Sync};
use crate::fleet::watch::Watch;
use crate::json::from_json;
use crate::reactive::effect;
use crate::session::UiError;
use api::{FleetHello, FleetSnapshot, FleetUpdate, WatchRequest, WatchedUpdate, WorkerId};
use leptos::leptos_dom::helpers::{IntervalHandle, TimeoutHandle, WindowListenerHandle};
use leptos::leptos_dom::helpers::{set_interval_with_handle, set_timeout_with_handle, window_event_listener_untyped};
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::time::Duration;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{EventSource, MessageEvent, VisibilityState};

const EVENTS: &str = "/v1/events";
const SNAPSHOT: &str = "/v1/fleet";

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection on which nothing has come for so long is given up: a dead tunnel closes nothing.
const SILENCE: Duration = Duration::from_mins(1);
/// A page that has been hidden for so long lets the stream go.
const HIDDEN: Duration = Duration::from_secs(20);
/// How often a hidden page asks how many workers are in trouble, for the title of its tab.
const HIDDEN_POLL: Duration = Duration::from_secs(15);

/// Follows the fleet until the calling component is taken away.
pub fn follow(fleet: Fleet) {
    let stream = Rc::new(Stream { fleet, state: RefCell::default() });
    stream.open();
    stream.visibility_changed();
    let watched = Rc::downgrade(&stream);
    let visibility = window_event_listener_untyped("visibilitychange", move |_| {
        if let Some(stream) = watched.upgrade() {
            stream.visibility_changed();
        }
    });
    let looking = Rc::downgrade(&stream);
    effect(move || {
        let looked_at = fleet.looked_at();
        with(&looking, |stream| stream.look(looked_at));
    });
    let clock = set_interval_with_handle(move || fleet.tick(), Duration::from_secs(1)).ok();
    // Dropped with the component that owns it; callbacks hold only weak references to the stream.
    StoredValue::new_local(Following { stream, visibility: Some(visibility), clock });
}

struct Following {
    stream: Rc<Stream>,
    visibility: Option<WindowListenerHandle>,
    clock: Option<IntervalHandle>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stream.close();
        if let Some(visibility) = self.visibility.take() {
            visibility.remove();
        }
        if let Some(clock) = self.clock.take() {
            clock.clear();
        }
    }
}

struct Stream {
    fleet: Fleet,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    source: Option<OpenSource>,
    sync: Sync,
    failures: u32,
    /// Counts openings, so that an answer to an earlier one is not taken for the current one's.
    generation: u64,
    /// The next attempt, or the end of patience with a silent connection.
    timer: Timer,
    /// The end of the stream of a hidden page, or its next poll.
    hidden: Timer,
    watch: Watch,
}

/// A timer that is cleared when it is replaced or dropped.
#[derive(Default)]
struct Timer(Option<TimeoutHandle>);

impl Timer {
    fn start(stream: &Rc<Stream>, after: Duration, action: fn(&Rc<Stream>)) -> Self {
        let stream = Rc::downgrade(stream);
        Self(set_timeout_with_handle(move || with(&stream, action), after).ok())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.clear();
        }
    }
}

/// An open event source with the listeners that must live as long as it.
struct OpenSource {
    source: EventSource,
    _on_event: Vec<Closure<dyn FnMut(MessageEvent)>>,
    _on_error: Closure<dyn FnMut()>,
}

impl Drop for OpenSource {
    fn drop(&mut self) {
        self.source.set_onerror(None);
        self.source.close();
    }
}

fn with(stream: &Weak<Stream>, action: impl FnOnce(&Rc<Stream>)) {
    if let Some(stream) = stream.upgrade() {
        action(&stream);
    }
}

impl Stream {
    fn open(self: &Rc<Self>) {
        let source = self.connect();
        let is_open = source.is_some();
        let replaced = {
            let mut state = self.state.borrow_mut();
            state.sync = Sync::new();
            state.generation += 1;
            state.watch.end();
            std::mem::replace(&mut state.source, source)
        };
        drop(replaced);
        if is_open {
            self.expect_more();
        } else {
            self.failed();
        }
    }

    fn connect(self: &Rc<Self>) -> Option<OpenSource> {
        let source = EventSource::new(EVENTS).ok()?;
        let listen = |name: &str, action: fn(&Rc<Self>, String)| {
            let stream = Rc::downgrade(self);
            let closure = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
                with(&stream, |stream| {
                    stream.expect_more();
                    action(stream, event.data().as_string().unwrap_or_default());
                });
            });
            source.add_event_listener_with_callback(name, closure.as_ref().unchecked_ref()).ok()?;
            Some(closure)
        };
        let on_event = [
            listen("hello", |stream, data| stream.begin(&data)),
            listen("update", |stream, data| stream.take_update(&data)),
            listen("watched", |stream, data| stream.take_watched(&data)),
            listen("resync", |stream, _| stream.ask_for_everything()),
        ];
        let stream = Rc::downgrade(self);
        let on_error = Closure::<dyn FnMut()>::new(move || with(&stream, Self::failed));
        source.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        Some(OpenSource { source, _on_event: on_event.into_iter().flatten().collect(), _on_error: on_error })
    }

    fn close(&self) {
        // Taken out first: dropping the source must find the state free.
        let state = self.state.take();
        drop(state);
    }

    /// Something came, or must come: waits for the next sign of life.
    fn expect_more(self: &Rc<Self>) {
        let timer = Timer::start(self, SILENCE, Self::failed);
        self.state.borrow_mut().timer = timer;
    }

    fn begin(self: &Rc<Self>, data: &str) {
        let Some(hello) = from_json::<FleetHello>(data) else {
            self.failed();
            return;
        };
        self.state.borrow_mut().watch.stream = hello.stream;
        self.ask_for_everything();
    }

    /// Whatever is known may be old.
    fn ask_for_everything(self: &Rc<Self>) {
        {
            let watch = &mut self.state.borrow_mut().watch;
            watch.told.clear();
            watch.is_asking = false;
        }
        self.ask_for_snapshot();
        self.tell_watch();
    }

    fn look(self: &Rc<Self>, workers: Vec<WorkerId>) {
        self.state.borrow_mut().watch.wanted = workers;
        self.tell_watch();
    }

    /// Tells the server at which workers the page looks, and takes everything about those that are new among them.
    fn tell_watch(self: &Rc<Self>) {
        let (request, path, generation) = {
            let mut state = self.state.borrow_mut();
            let Some(request) = state.watch.next() else { return };
            state.watch.is_asking = true;
            (request, format!("{EVENTS}/{}/watch", state.watch.stream), state.generation)
        };
        let stream = Rc::downgrade(self);
        spawn_local(async move {
            let body = serde_json::to_string(&request).unwrap_or_default();
            let reply = exchange(&path, Some(Body::json(body))).await;
            with(&stream, |stream| {
                if stream.state.borrow().generation == generation {
                    stream.take_watch_answer(request, reply);
                }
            });
        });
    }

    fn take_watch_answer(self: &Rc<Self>, request: WatchRequest, reply: Option<Reply>) {
        let answer = reply.filter(Reply::is_ok).and_then(|reply| from_json::<WatchedUpdate>(&reply.text));
        let Some(answer) = answer else {
            self.failed();
            return;
        };
        self.fleet.show_watched(answer);
        let looked_at = untrack(|| self.fleet.looked_at());
        self.state.borrow_mut().watch.answered(request.workers, &looked_at);
        // the page may have moved on meanwhile
        self.tell_watch();
    }

    fn take_watched(self: &Rc<Self>, data: &str) {
        match from_json::<WatchedUpdate>(data) {
            Some(update) => self.fleet.apply_watched(update),
            None => self.failed(),
        }
    }

    fn take_update(self: &Rc<Self>, data: &str) {
        let Some(update) = from_json::<FleetUpdate>(data) else {
            // A server of another version: only a new page can understand it.
            self.failed();
            return;
        };
        let step = self.state.borrow_mut().sync.take(update);
        match step {
            Step::Apply(update) => self.fleet.apply(update),
            Step::Nothing => {}
            Step::Lost => self.ask_for_everything(),
        }
    }

    fn ask_for_snapshot(self: &Rc<Self>) {
        let generation = {
            let mut state = self.state.borrow_mut();
            state.sync = Sync::new();
            state.generation += 1;
            state.generation
        };
        let stream = Rc::downgrade(self);
        spawn_local(async move {
            let answer = fetch_snapshot().await;
            with(&stream, |stream| {
                if stream.state.borrow().generation == generation {
                    stream.take_answer(answer);
                }
            });
        });
    }

    fn take_answer(self: &Rc<Self>, answer: Answer) {
        let snapshot = match answer {
            Answer::Snapshot(snapshot) => snapshot,
            Answer::LoggedOut => {
                self.close();
                UiError::LoggedOut.lead_on();
                return;
            }
            Answer::Failed => {
                self.failed();
                return;
            }
        };
        let following = self.state.borrow_mut().sync.snapshot(snapshot.sequence);
        let Some(following) = following else {
            self.failed();
            return;
        };
        self.state.borrow_mut().failures = 0;
        self.fleet.show_snapshot(*snapshot);
        for update in following {
            self.fleet.apply(update);
        }
        self.fleet.set_live();
    }

    fn failed(self: &Rc<Self>) {
        let (source, failures) = {
            let mut state = self.state.borrow_mut();
            state.failures = state.failures.saturating_add(1);
            state.generation += 1;
            state.watch.end();
            (state.source.take(), state.failures)
        };
        drop(source);
        self.fleet.set_broken();
        let timer = Timer::start(self, pause_after(failures), Self::open);
        self.state.borrow_mut().timer = timer;
        if failures == 2 {
            // An event source does not tell why it failed: the session may have ended.
            spawn_local(async {
                if let Err(error) = ask(AskTroubled {}).await {
                    error.lead_on();
                }
            });
        }
    }

    fn visibility_changed(self: &Rc<Self>) {
        if document().visibility_state() == VisibilityState::Hidden {
            let timer = Timer::start(self, HIDDEN, Self::rest);
            self.state.borrow_mut().hidden = timer;
            return;
        }
        let is_resting = {
            let mut state = self.state.borrow_mut();
            state.hidden = Timer::default();
            state.source.is_none()
        };
        if is_resting {
            self.open();
        }
        self.fleet.tick();
    }

    /// The page has been hidden for a while: only the number in its tab's title is kept current.
    fn rest(self: &Rc<Self>) {
        let (source, timer) = {
            let mut state = self.state.borrow_mut();
            state.generation += 1;
            state.watch.end();
            (state.source.take(), std::mem::take(&mut state.timer))
        };
        drop((source, timer));
        let next = Timer::start(self, HIDDEN_POLL, Self::rest);
        self.state.borrow_mut().hidden = next;
        let fleet = self.fleet;
        spawn_local(async move {
            if let Ok(troubled) = ask(AskTroubled {}).await {
                fleet.set_troubled_while_hidden(troubled);
            }
        });
    }
}

/// Doubles with each failure up to [`LONGEST_PAUSE`]; random within its upper half, so that many browsers do not come
/// back at once.
fn pause_after(failures: u32) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(LONGEST_PAUSE);
    longest.mul_f64(0.5 + js_sys::Math::random() / 2.0)
}

enum Answer {
    Snapshot(Box<FleetSnapshot>),
    LoggedOut,
    Failed,
}

async fn fetch_snapshot() -> Answer {
    let Some(reply) = exchange(SNAPSHOT, None).await else { return Answer::Failed };
    if reply.status == 401 {
        return Answer::LoggedOut;
    }
    let snapshot = reply.is_ok().then(|| from_json(&reply.text)).flatten();
    snapshot.map_or(Answer::Failed, |snapshot| Answer::Snapshot(Box::new(snapshot)))
}
