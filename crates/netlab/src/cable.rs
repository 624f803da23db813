//! Cables between hosts, good and bad.

use crate::host::Host;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tun_rs::{DeviceBuilder, SyncDevice};

/// The largest packet that the kernel hands over, with its header.
const MAX_PACKET_BYTES: usize = 64 * 1024 + VIRTIO_HEADER_BYTES;
/// Stands before each packet of [`PacketSize::Large`] (`struct virtio_net_hdr`).
const VIRTIO_HEADER_BYTES: usize = 10;
/// As an Ethernet card has it.
const MTU: u16 = 1500;
/// Packets that may wait in the kernel for the thread that carries them.
const DEVICE_QUEUE: u32 = 10_000;
/// A modem or switch drops what would have to wait longer for a slow line.
const MAX_QUEUE: Duration = Duration::from_millis(400);

/// Where a cable is plugged in: in a network of its own, of 256 addresses.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The host.
    pub host: &'a Host,
    /// What the interface is called there.
    pub interface: &'a str,
    /// Its address.
    pub address: Ipv4Addr,
}

impl End<'_> {
    fn configure(&self) -> Result<()> {
        let Self { host, interface, address } = self;
        host.run(&format!("ip addr add {address}/24 dev {interface}"))?;
        host.run(&format!("ip link set {interface} up"))?;
        Ok(())
    }
}

/// A pair of the kernel's virtual Ethernet devices: no delay, no loss, no limit.
pub fn wire(one: End, other: End) -> Result<()> {
    let (name, peer) = (one.interface, other.interface);
    one.host.run(&format!("ip link add {name} type veth peer name {peer} netns {}", other.host.namespace()))?;
    one.configure()?;
    other.configure()
}

/// How good a cable is, the same both ways. The default is perfect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// How late each packet arrives: half of the round trip.
    pub delay: Duration,
    /// Of 1,000 packets so many are lost.
    pub loss_per_mille: u32,
    /// Bytes in a second; no limit when absent.
    pub bytes_per_s: Option<u64>,
    /// Nothing arrives, and nobody is told.
    pub is_silent: bool,
}

/// What a cable carries at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSize {
    /// Packets as on an Ethernet. What is counted and lost is a packet as on a real cable.
    Ethernet,
    /// The kernel's large ones, which a real card would cut up: many times faster. What is counted and lost is up to
    /// 64 KiB.
    Large,
}

/// What entered a cable at one end, lost packets included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// IP packets.
    pub packets: u64,
    /// Their lengths, IP and TCP headers included.
    pub bytes: u64,
    /// What TCP carried in them.
    pub payload_bytes: u64,
}

impl Traffic {
    /// As an Ethernet card counts them: with the 14 bytes of its header before each.
    pub fn ethernet_bytes(self) -> u64 {
        self.bytes + 14 * self.packets
    }

    /// What came after an earlier moment.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            payload_bytes: self.payload_bytes - before.payload_bytes,
        }
    }
}

/// A cable whose quality can be changed at any time.
#[derive(Debug)]
pub struct Cable {
    line: Arc<Mutex<Line>>,
}

impl Cable {
    /// Lays one.
    pub fn lay(one: End, other: End, size: PacketSize) -> Result<Self> {
        let one_device = Arc::new(plug(one, size)?);
        let other_device = Arc::new(plug(other, size)?);
        let line = Arc::new(Mutex::new(Line::new(size)));
        carry(Way::Forth, &one_device, &other_device, &line)?;
        carry(Way::Back, &other_device, &one_device, &line)?;
        Ok(Self { line })
    }

    /// Makes it as good or bad as this, for packets that are sent from now on.
    pub fn set(&self, quality: Quality) {
        lock(&self.line).quality = quality;
    }

    /// Packets of the TCP connections of this moment are lost from now on, as when a router on the way loses its table
    /// of translated addresses. Later connections work.
    pub fn forget_connections(&self) {
        let mut line = lock(&self.line);
        let seen = std::mem::take(&mut line.seen);
        line.forgotten.extend(seen);
    }

    /// What was sent at the first end.
    pub fn forth(&self) -> Traffic {
        lock(&self.line).forth.traffic
    }

    /// What was sent at the other end.
    pub fn back(&self) -> Traffic {
        lock(&self.line).back.traffic
    }
}

/// Makes the device at one end. It can be moved to another host and still be read and written here.
fn plug(end: End, size: PacketSize) -> Result<SyncDevice> {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let name = format!("cable{}", MADE.fetch_add(1, Ordering::Relaxed));
    let device = DeviceBuilder::new()
        .name(&name)
        .mtu(MTU)
        .offload(size == PacketSize::Large)
        .tx_queue_len(DEVICE_QUEUE)
        .enable(false)
        .build_sync()
        .context("no TUN device can be made: this needs /dev/net/tun and the right to set up networks")?;
    let ip = |line: String| crate::process::run(std::process::Command::new("ip").args(line.split(' ')), &line);
    ip(format!("link set {name} netns {} name {}", end.host.namespace(), end.interface))?;
    end.configure()?;
    Ok(device)
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Forth,
    Back,
}

/// Both directions of a cable.
#[derive(Debug)]
struct Line {
    quality: Quality,
    header_bytes: usize,
    forth: Direction,
    back: Direction,
    seen: HashSet<Connection>,
    forgotten: HashSet<Connection>,
}

#[derive(Debug)]
struct Direction {
    traffic: Traffic,
    /// When a line of limited rate has sent what it was given.
    free_at: Instant,
    chance: Chance,
}

impl Line {
    fn new(size: PacketSize) -> Self {
        let direction = |seed| Direction { traffic: Traffic::default(), free_at: Instant::now(), chance: Chance(seed) };
        Self {
            quality: Quality::default(),
            header_bytes: if size == PacketSize::Large { VIRTIO_HEADER_BYTES } else { 0 },
            forth: direction(0x9e37_79b9_7f4a_7c15),
            back: direction(0xd1b5_4a32_d192_ed03),
            seen: HashSet::new(),
            forgotten: HashSet::new(),
        }
    }

    /// When a packet that enters now comes out; None when it is lost.
    fn admit(&mut self, way: Way, packet: &[u8], now: Instant) -> Option<Instant> {
        let packet = packet.get(self.header_bytes..)?;
        let is_forgotten = self.note_connection(packet);
        let direction = match way {
            Way::Forth => &mut self.forth,
            Way::Back => &mut self.back,
        };
        direction.count(packet);
        let Quality { delay, loss_per_mille, bytes_per_s, is_silent } = self.quality;
        if is_silent || is_forgotten || direction.chance.below_1000() < loss_per_mille {
            return None;
        }
        let Some(bytes_per_s) = bytes_per_s else { return Some(now + delay) };
        let begins = direction.free_at.max(now);
        if begins - now > MAX_QUEUE {
            return None;
        }
        direction.free_at = begins + Duration::from_secs_f64(packet.len() as f64 / bytes_per_s as f64);
        Some(direction.free_at + delay)
    }

    /// Whether the packet is of a connection that was forgotten.
    fn note_connection(&mut self, packet: &[u8]) -> bool {
        let Some(connection) = Connection::of(packet) else { return false };
        if self.forgotten.contains(&connection) {
            return true;
        }
        self.seen.insert(connection);
        false
    }
}

impl Direction {
    fn count(&mut self, packet: &[u8]) {
        self.traffic.packets += 1;
        self.traffic.bytes += packet.len() as u64;
        self.traffic.payload_bytes += tcp_payload_bytes(packet).unwrap_or(0) as u64;
    }
}

/// Chance that comes out the same in every run (xorshift64, Marsaglia 2003).
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn below_1000(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 % 1000).unwrap_or(0)
    }
}

/// Both ends of a TCP connection, the smaller one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Connection([(u32, u16); 2]);

impl Connection {
    /// None where it is no TCP over IPv4.
    fn of(packet: &[u8]) -> Option<Self> {
        let tcp = tcp_segment(packet)?;
        let source = (u32::from_be_bytes(bytes(packet, 12)?), u16::from_be_bytes(bytes(tcp, 0)?));
        let target = (u32::from_be_bytes(bytes(packet, 16)?), u16::from_be_bytes(bytes(tcp, 2)?));
        Some(Self(if source < target { [source, target] } else { [target, source] }))
    }
}

/// What an IPv4 packet (RFC 791) holds of TCP.
fn tcp_segment(packet: &[u8]) -> Option<&[u8]> {
    const TCP: u8 = 6;
    let first = *packet.first()?;
    if first >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    packet.get(usize::from(first & 0xf) * 4..)
}

fn tcp_payload_bytes(packet: &[u8]) -> Option<usize> {
    let segment = tcp_segment(packet)?;
    let header_bytes = usize::from(*segment.get(12)? >> 4) * 4;
    segment.len().checked_sub(header_bytes)
}

fn bytes<const N: usize>(from: &[u8], at: usize) -> Option<[u8; N]> {
    from.get(at..at + N)?.try_into().ok()
}

/// A packet on its way.
struct Carried {
    due: Instant,
    packet: Box<[u8]>,
}

/// One thread takes packets in, another one lets them out when they are due. Both end when the device is taken away,
/// which happens with the host's end at the latest.
fn carry(way: Way, from: &Arc<SyncDevice>, to: &Arc<SyncDevice>, line: &Arc<Mutex<Line>>) -> Result<()> {
    let (sender, receiver) = channel();
    let (from, to, line) = (Arc::clone(from), Arc::clone(to), Arc::clone(line));
    thread::Builder::new().name("cable in".to_owned()).spawn(move || take_in(way, &from, &line, &sender))?;
    thread::Builder::new().name("cable out".to_owned()).spawn(move || let_out(&to, &receiver))?;
    Ok(())
}

fn take_in(way: Way, from: &SyncDevice, line: &Mutex<Line>, sender: &Sender<Carried>) {
    let mut buffer = vec![0; MAX_PACKET_BYTES];
    while let Ok(length) = from.recv(&mut buffer) {
        let packet = buffer.get(..length).unwrap_or_default();
        let due = lock(line).admit(way, packet, Instant::now());
        let Some(due) = due else { continue };
        if sender.send(Carried { due, packet: packet.into() }).is_err() {
            return;
        }
    }
}

fn let_out(to: &SyncDevice, receiver: &Receiver<Carried>) {
    // The kernel may otherwise wake a thread 50 µs late. Where it refuses, the cable is a little slower.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    while let Ok(Carried { due, packet }) = receiver.recv() {
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            thread::sleep(early);
        }
        // an interface that is down takes nothing, and the packet is lost
        let _ = to.send(&packet);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet with a TCP segment from port 1 of 10.0.0.1 to port 2 of 10.0.0.2.
    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..24].copy_from_slice(&[0, 1, 0, 2]);
        packet[32] = 0x50;
        packet.extend_from_slice(payload);
        packet
    }

    fn answer_to(packet: &[u8]) -> Vec<u8> {
        let mut answer = packet.to_vec();
        answer[12..20].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
        answer[20..24].copy_from_slice(&[0, 2, 0, 1]);
        answer
    }

    #[test]
    fn packets_and_what_they_carry_are_counted() {
        let mut line = Line::new(PacketSize::Ethernet);
        line.admit(Way::Forth, &packet(b"hello"), Instant::now());
        line.admit(Way::Forth, &packet(b""), Instant::now());
        assert_eq!(line.forth.traffic, Traffic { packets: 2, bytes: 85, payload_bytes: 5 });
        assert_eq!(line.forth.traffic.ethernet_bytes(), 113);
        assert_eq!(line.back.traffic, Traffic::default());
    }

    #[test]
    fn a_delayed_packet_is_late_by_the_delay() {
        let mut line = Line::new(PacketSize::Ethernet);
        let delay = Duration::from_millis(7);
        line.quality = Quality { delay, ..Quality::default() };
        let now = Instant::now();
        assert_eq!(line.admit(Way::Back, &packet(b""), now), Some(now + delay));
    }

    #[test]
    fn a_slow_line_lets_packets_wait_for_each_other_and_loses_what_would_wait_too_long() {
        let mut line = Line::new(PacketSize::Ethernet);
        line.quality = Quality { bytes_per_s: Some(400), ..Quality::default() };
        let now = line.forth.free_at + Duration::from_secs(1);
        let after = |ms| Some(now + Duration::from_millis(ms));
        let outcomes: Vec<_> = (0..7).map(|_| line.admit(Way::Forth, &packet(b""), now)).collect();
        assert_eq!(outcomes, [after(100), after(200), after(300), after(400), after(500), None, None]);
        assert_eq!(line.admit(Way::Back, &packet(b""), now), after(100), "the other direction is free");
    }

    #[test]
    fn about_so_many_are_lost_as_wished() {
        let mut line = Line::new(PacketSize::Ethernet);
        line.quality = Quality { loss_per_mille: 50, ..Quality::default() };
        let lost = (0..10_000).filter(|_| line.admit(Way::Forth, &packet(b""), Instant::now()).is_none()).count();
        assert!((400..600).contains(&lost), "{lost}");
    }

    #[test]
    fn connections_that_were_forgotten_are_lost_in_both_directions_and_later_ones_are_not() {
        let mut line = Line::new(PacketSize::Ethernet);
        let (old, now) = (packet(b""), Instant::now());
        assert!(line.admit(Way::Forth, &old, now).is_some());
        let seen = std::mem::take(&mut line.seen);
        line.forgotten.extend(seen);
        assert!(line.admit(Way::Forth, &old, now).is_none());
        assert!(line.admit(Way::Back, &answer_to(&old), now).is_none());
        let mut new = old;
        new[21] = 3;
        assert!(line.admit(Way::Forth, &new, now).is_some());
    }

    #[test]
    fn what_is_no_tcp_is_no_connection() {
        for packet in [&[][..], &[0x45; 3], &[0x60; 60]] {
            assert_eq!(Connection::of(packet), None);
        }
    }
}
