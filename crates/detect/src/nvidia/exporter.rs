//! NVIDIA's DCGM exporter, which many clusters run on each host: what it tells of a card and the driver's library and tool
//! do not. Its answer is text in the format of Prometheus (NVIDIA's documentation of DCGM Exporter).

use crate::card::Card;
use crate::figures::{self, Figure};
use crate::{pci, text};
use api::{AbsentWhy, DeviceHealth};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// An exporter on the same host answers from memory.
const DEADLINE: Duration = Duration::from_secs(1);
/// A host with sixteen cards takes 200 KiB.
const ANSWER_LIMIT_BYTES: u64 = 4 * 1024 * 1024;
/// Where nobody listens, nobody is going to soon.
const ASKED_AGAIN_AFTER: Duration = Duration::from_mins(10);
/// HTTP/1.0, so that the answer comes as it is and ends with the connection.
const QUESTION: &[u8] = b"GET /metrics HTTP/1.0\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n";

const TEMPERATURE: &str = "DCGM_FI_DEV_GPU_TEMP";
const POWER: &str = "DCGM_FI_DEV_POWER_USAGE";
const LAST_XID: &str = "DCGM_FI_DEV_XID_ERRORS";
/// What programs do wrong; the card is none the worse for it. NVIDIA's own device plugin for Kubernetes passes over the
/// same ones in its health check (NVIDIA/k8s-device-plugin, `internal/rm/health.go`).
const XIDS_OF_PROGRAMS: [u32; 6] = [13, 31, 43, 45, 68, 109];

/// Asks the exporter at an address.
pub(crate) struct Exporter {
    address: SocketAddr,
    /// Nobody answered; not asked before then.
    rests_until: Option<Instant>,
}

impl Exporter {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, rests_until: None }
    }

    /// Fills in what the cards lack. An exporter that is not there or does not answer is no problem: it is an extra.
    pub(crate) async fn complete(&mut self, cards: &mut [Card]) {
        let is_resting = self.rests_until.is_some_and(|until| Instant::now() < until);
        if is_resting || !cards.iter().any(lacks_something) {
            return;
        }
        let answer = timeout(DEADLINE, ask(self.address)).await.ok().flatten();
        let Some(told) = answer.as_deref().and_then(body).map(parse).filter(|told| !told.is_empty()) else {
            self.rests_until = Some(Instant::now() + ASKED_AGAIN_AFTER);
            return;
        };
        self.rests_until = None;
        for card in cards.iter_mut().filter(|card| !card.is_lost) {
            if let Some(told) = told.iter().find(|told| told.is_about(card)) {
                told.complete(card);
            }
        }
    }
}

fn lacks_something(card: &Card) -> bool {
    card.temperature_c.is_err() || card.power_w.is_err() || card.health.is_err()
}

async fn ask(address: SocketAddr) -> Option<String> {
    let mut connection = TcpStream::connect(address).await.ok()?;
    connection.write_all(QUESTION).await.ok()?;
    let mut answer = Vec::new();
    connection.take(ANSWER_LIMIT_BYTES).read_to_end(&mut answer).await.ok()?;
    String::from_utf8(answer).ok()
}

/// What follows the headers of a good answer.
fn body(answer: &str) -> Option<&str> {
    let (headers, body) = answer.split_once("\r\n\r\n")?;
    let status = headers.split(' ').nth(1)?;
    (status == "200").then_some(body)
}

/// What the exporter tells of one card.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    uuid: Option<String>,
    bus_id: Option<String>,
    temperature_c: Figure<f64>,
    power_w: Figure<f64>,
    /// The last error that the driver reported; 0 for none.
    last_xid: Option<u32>,
}

impl Told {
    fn is_about(&self, card: &Card) -> bool {
        let is_same = |told: &Option<String>, known: &Option<String>| told.is_some() && told == known;
        is_same(&self.uuid, &card.uuid) || is_same(&self.bus_id, &card.bus_id)
    }

    fn complete(&self, card: &mut Card) {
        let fill = |known: &mut Figure<f64>, told: Figure<f64>| {
            if let (Err(_), Ok(told)) = (&known, told) {
                *known = Ok(told);
            }
        };
        fill(&mut card.temperature_c, self.temperature_c);
        fill(&mut card.power_w, self.power_w);
        let Some(xid) = self.last_xid.filter(|_| card.health.is_err()) else { return };
        if xid > 0 {
            card.error_codes.push(format!("XID {xid}"));
        }
        let is_well = xid == 0 || XIDS_OF_PROGRAMS.contains(&xid);
        let health = if is_well { DeviceHealth::Ok } else { DeviceHealth::Warning };
        card.health = Ok((health, format!("XID {xid}")));
    }
}

/// Reads the answer; lines that are none of the wanted figures are passed over, and so are those about parts of cards.
pub(super) fn parse(answer: &str) -> Vec<Told> {
    let mut order = Vec::new();
    let mut cards: HashMap<String, Told> = HashMap::new();
    for sample in answer.lines().filter_map(Sample::read) {
        if sample.label("GPU_I_ID").is_some_and(|part| !part.is_empty()) {
            continue;
        }
        let Some(place) = sample.label("UUID").or_else(|| sample.label("pci_bus_id")) else { continue };
        let told = cards.entry(place.to_owned()).or_insert_with(|| {
            order.push(place.to_owned());
            Told {
                uuid: sample.label("UUID").map(text::cell),
                bus_id: sample.label("pci_bus_id").and_then(pci::address),
                temperature_c: Err(AbsentWhy::NotTold),
                power_w: Err(AbsentWhy::NotTold),
                last_xid: None,
            }
        });
        match sample.name {
            TEMPERATURE => told.temperature_c = figures::celsius(sample.value),
            POWER => told.power_w = figures::watts(sample.value),
            _ => told.last_xid = figures::integer(sample.value).ok().and_then(|xid| u32::try_from(xid).ok()),
        }
    }
    order.iter().filter_map(|place| cards.remove(place)).collect()
}

/// A line `NAME{label="value",…} value`.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, &'a str)>,
    value: &'a str,
}

impl<'a> Sample<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (name, rest) = line.trim().split_once('{')?;
        if !matches!(name, TEMPERATURE | POWER | LAST_XID) {
            return None;
        }
        let (labels, rest) = labels(rest)?;
        // A time may follow.
        Some(Self { name, labels, value: rest.split_whitespace().next()? })
    }

    fn label(&self, wanted: &str) -> Option<&'a str> {
        self.labels.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value)
    }
}

/// The labels up to the closing brace, and what follows. A value may hold anything, with a backslash before quotes.
fn labels(mut rest: &str) -> Option<(Vec<(&str, &str)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let end = closing_quote(after)?;
        labels.push((name, after.get(..end)?));
        rest = after.get(end + 1..)?;
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices()
        .find(|&(_, c)| {
            let closes = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            closes
        })
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = include_str!("../../tests/fixtures/dcgm-exporter-two-cards.txt");

    fn card(uuid: &str) -> Card {
        Card { uuid: Some(uuid.to_owned()), ..Card::new(0, "NVIDIA T4") }
    }

    fn completed(mut card: Card) -> Card {
        if let Some(told) = parse(ANSWER).iter().find(|told| told.is_about(&card)) {
            told.complete(&mut card);
        }
        card
    }

    #[test]
    fn what_a_card_lacks_is_filled_in_and_nothing_else() {
        let known = Card { temperature_c: Ok(30.0), ..card("GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52") };
        let card = completed(known);
        assert_eq!((card.temperature_c, card.power_w), (Ok(30.0), Ok(26.539)));
        assert_eq!((card.health, card.error_codes), (Ok((DeviceHealth::Ok, "XID 0".to_owned())), Vec::new()));
    }

    #[test]
    fn a_card_is_found_by_its_place_on_the_bus_too() {
        let unnamed = Card { bus_id: Some("0000:00:1f.0".to_owned()), ..Card::new(1, "NVIDIA T4") };
        let card = completed(unnamed);
        assert_eq!((card.temperature_c, card.power_w), (Ok(41.0), Err(AbsentWhy::NotTold)));
        assert_eq!(card.health, Ok((DeviceHealth::Warning, "XID 79".to_owned())));
        assert_eq!(card.error_codes, ["XID 79"]);
        assert_eq!(completed(card.clone()), card);
    }

    #[test]
    fn a_card_that_the_exporter_does_not_know_stays_as_it_was() {
        assert_eq!(completed(card("GPU-other")), card("GPU-other"));
    }

    #[test]
    fn an_error_of_a_program_does_not_make_a_card_sick() {
        let answer = "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-a\"} 31\n";
        let mut card = card("GPU-a");
        parse(answer)[0].complete(&mut card);
        assert_eq!(
            (card.health, card.error_codes),
            (Ok((DeviceHealth::Ok, "XID 31".to_owned())), vec!["XID 31".to_owned()])
        );
    }

    #[test]
    fn numbers_that_stand_for_unknown_are_none() {
        let told =
            parse("DCGM_FI_DEV_GPU_TEMP{UUID=\"a\"} 9223372036854775794\nDCGM_FI_DEV_POWER_USAGE{UUID=\"a\"} NaN\n");
        assert_eq!((told[0].temperature_c, told[0].power_w), (Err(AbsentWhy::Unreadable), Err(AbsentWhy::Unreadable)));
    }

    #[test]
    fn labels_may_hold_anything() {
        let told = parse("DCGM_FI_DEV_GPU_TEMP{pod=\"a\\\"},b\", UUID=\"GPU-a\"} 40 1707844800000\n");
        assert_eq!((told[0].uuid.as_deref(), told[0].temperature_c), (Some("GPU-a"), Ok(40.0)));
    }

    #[test]
    fn other_answers_tell_nothing() {
        assert_eq!(body("HTTP/1.1 404 Not Found\r\n\r\nDCGM_FI_DEV_GPU_TEMP{UUID=\"a\"} 1"), None);
        assert_eq!(body("HTTP/1.0 200 OK\r\nA: b\r\n\r\nx"), Some("x"));
        for text in
            ["", "<html>", "# HELP DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP 40", "DCGM_FI_DEV_GPU_TEMP{UUID=\"a"]
        {
            assert_eq!(parse(text), [], "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn an_answer_cut_off_anywhere_names_no_card_that_is_not_there(at in 0..ANSWER.len()) {
            let uuids = |text: &str| parse(text).into_iter().map(|told| told.uuid).collect::<Vec<_>>();
            let whole = uuids(ANSWER);
            let cut = ANSWER.get(..at).unwrap_or_default();
            proptest::prop_assert!(uuids(cut).iter().all(|uuid| whole.contains(uuid)));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "(DCGM_FI_DEV_GPU_TEMP|DCGM_FI_DEV_XID_ERRORS|UUID|[{}=\",\\\\ \n]|[0-9.eE+-]{1,9}|\\PC){0,60}") {
            let _ = parse(&text);
        }
    }
}
