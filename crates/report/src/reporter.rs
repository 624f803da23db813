//! The worker's side: what of a new look at the host is worth telling.

use crate::message::{Facts, FactsError, Readings, Told};
use crate::reading::walk;
use api::WorkerStatus;

/// How exactly readings are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// A reading that wanders within its tolerance is not worth a message.
    Coarse,
    /// Somebody looks.
    Exact,
}

/// Knows what the server has, and tells the rest.
#[derive(Debug, Default)]
pub struct Reporter {
    told: Option<Known>,
    number: u32,
}

/// What the server has.
#[derive(Debug)]
struct Known {
    /// All but readings and what only grows older.
    facts: WorkerStatus,
    readings: Vec<Option<i64>>,
}

impl Reporter {
    /// A server that has nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the server has to hear after this look; None when it knows as much already.
    pub fn tell(&mut self, status: &WorkerStatus, precision: Precision) -> Result<Option<Told>, FactsError> {
        let (now, tolerances) = known(status);
        match &mut self.told {
            Some(told) if told.facts == now.facts => {
                let changed = told.readings_to_tell(&now, &tolerances, precision);
                Ok(changed.map(|readings| Told::Readings(Readings { facts: self.number, ..readings })))
            }
            _ => self.tell_all(status).map(Some),
        }
    }

    /// Everything, whatever the server has: what only grows older is brought up to date by it.
    pub fn tell_all(&mut self, status: &WorkerStatus) -> Result<Told, FactsError> {
        let facts = Facts::pack(self.number.wrapping_add(1), status)?;
        self.number = facts.number;
        self.told = Some(known(status).0);
        Ok(Told::Facts(facts))
    }
}

impl Known {
    /// Takes in what is to be told.
    fn readings_to_tell(&mut self, now: &Self, tolerances: &[u64], precision: Precision) -> Option<Readings> {
        let mut told = Readings::default();
        let (mut skipped, mut length) = (0, 0);
        let all = self.readings.iter_mut().zip(&now.readings).zip(tolerances);
        for (position, ((known, now), tolerance)) in (0_u32..).zip(all) {
            let is_worth_telling = match (&*known, now) {
                (Some(known), Some(now)) if precision == Precision::Coarse => known.abs_diff(*now) >= *tolerance,
                (known, now) => known != now,
            };
            let value = if is_worth_telling { *now } else { None };
            if let Some(value) = value {
                told.values.push(value);
                length += 1;
            } else {
                if length > 0 {
                    told.runs.extend([skipped, length]);
                    (skipped, length) = (0, 0);
                }
                skipped += 1;
            }
            if is_worth_telling {
                *known = *now;
                told.absent.extend(now.is_none().then_some(position));
            }
        }
        if length > 0 {
            told.runs.extend([skipped, length]);
        }
        (told != Readings::default()).then_some(told)
    }
}

fn known(status: &WorkerStatus) -> (Known, Vec<u64>) {
    let mut facts = status.clone();
    let (mut readings, mut tolerances) = (Vec::new(), Vec::new());
    walk(&mut facts, |reading| {
        readings.push(reading.get());
        tolerances.push(reading.tolerance);
        reading.clear();
    });
    for problem in &mut facts.problems {
        problem.age_s = 0;
    }
    facts.devices_stale_s = facts.devices_stale_s.map(|_| 0);
    facts.uptime = None;
    (Known { facts, readings }, tolerances)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::reading::apply;
    use api::{CpuInfo, DeviceCore, DeviceMemory, GpuDevice, MemoryInfo, Problem, Reason, Severity, UptimeInfo};
    use proptest::prelude::*;

    pub(crate) fn status() -> WorkerStatus {
        WorkerStatus {
            cpu: Some(CpuInfo { total: Some(192.0), utilization_rate: Some(3.0) }),
            memory: Some(MemoryInfo { total: Some(1_000_000), used: Some(100_000), ..MemoryInfo::default() }),
            uptime: Some(UptimeInfo { uptime: Some(1.0), boot_time: None }),
            gpu_devices: Some(vec![GpuDevice {
                name: "910B3".to_owned(),
                temperature: Some(46.0),
                power_w: Some(91.0),
                core: Some(DeviceCore { total: Some(20), utilization_rate: Some(0.0) }),
                memory: Some(DeviceMemory { total: Some(65_536), used: Some(3_000), ..DeviceMemory::default() }),
                ..GpuDevice::default()
            }]),
            problems: vec![Problem {
                severity: Severity::Warning,
                reason: Reason::ToolMissing { tool: "npu-smi".to_owned() },
                age_s: 5,
            }],
            devices_stale_s: Some(10),
            ..WorkerStatus::default()
        }
    }

    fn device(status: &mut WorkerStatus) -> &mut GpuDevice {
        status.gpu_devices.as_mut().unwrap().first_mut().unwrap()
    }

    fn facts_of(told: Option<Told>) -> WorkerStatus {
        let Some(Told::Facts(facts)) = told else { panic!("{told:?}") };
        facts.unpack().unwrap()
    }

    #[test]
    fn everything_comes_first_and_then_nothing_while_nothing_changes() {
        let mut reporter = Reporter::new();
        assert_eq!(facts_of(reporter.tell(&status(), Precision::Coarse).unwrap()), status());
        assert_eq!(reporter.tell(&status(), Precision::Exact).unwrap(), None);
    }

    #[test]
    fn what_only_grows_older_is_no_change() {
        let mut reporter = Reporter::new();
        reporter.tell(&status(), Precision::Coarse).unwrap();
        let mut older = status();
        older.problems[0].age_s = 15;
        older.devices_stale_s = Some(20);
        older.uptime = Some(UptimeInfo { uptime: Some(10_001.0), boot_time: None });
        assert_eq!(reporter.tell(&older, Precision::Exact).unwrap(), None);
        assert_eq!(facts_of(Some(reporter.tell_all(&older).unwrap())), older);
    }

    #[test]
    fn other_facts_are_told_as_a_whole() {
        let table: [fn(&mut WorkerStatus); 4] = [
            |status| status.problems.clear(),
            |status| status.devices_stale_s = None,
            |status| device(status).health = Some(api::DeviceHealth::Critical),
            |status| status.gpu_devices = None,
        ];
        for change in table {
            let mut reporter = Reporter::new();
            reporter.tell(&status(), Precision::Coarse).unwrap();
            let mut changed = status();
            change(&mut changed);
            assert_eq!(facts_of(reporter.tell(&changed, Precision::Coarse).unwrap()), changed);
        }
    }

    #[test]
    fn a_reading_within_its_tolerance_is_told_only_to_who_looks() {
        let mut reporter = Reporter::new();
        reporter.tell(&status(), Precision::Coarse).unwrap();
        let mut warmer = status();
        device(&mut warmer).temperature = Some(47.0);
        assert_eq!(reporter.tell(&warmer, Precision::Coarse).unwrap(), None);
        assert!(matches!(reporter.tell(&warmer, Precision::Exact).unwrap(), Some(Told::Readings(_))));
        // what was told is what counts from now on
        device(&mut warmer).temperature = Some(48.0);
        assert_eq!(reporter.tell(&warmer, Precision::Coarse).unwrap(), None);
    }

    #[test]
    fn a_change_of_all_readings_of_eight_devices_takes_few_bytes() {
        let eight = |used: u64, tenths: f64| {
            let mut status = status();
            let mut one = device(&mut status).clone();
            one.temperature = Some(40.0 + tenths);
            one.power_w = Some(90.0 + tenths * 10.0);
            one.core = Some(DeviceCore { total: Some(20), utilization_rate: Some(50.0 + tenths) });
            one.memory = Some(DeviceMemory {
                total: Some(64 << 30),
                used: Some(used),
                utilization_rate: Some(30.0 + tenths),
                ..DeviceMemory::default()
            });
            status.gpu_devices = Some(vec![one; 8]);
            status
        };
        let mut reporter = Reporter::new();
        reporter.tell(&eight(20 << 30, 0.0), Precision::Coarse).unwrap();
        let told = reporter.tell(&eight(22 << 30, 5.0), Precision::Coarse).unwrap().unwrap();
        let bytes = crate::frame(&crate::WorkerMessage::from(told)).len();
        assert!(bytes < 160, "{bytes}");
    }

    /// Readings that come, go and wander, a few looks in a row.
    fn looks() -> impl Strategy<Value = Vec<WorkerStatus>> {
        let reading = proptest::option::weighted(0.8, 0u32..10_000);
        let look = (reading.clone(), reading.clone(), reading.clone(), reading, 1usize..3).prop_map(
            |(cpu, temperature, power, used, devices)| {
                let hundredths = |value: Option<u32>| value.map(|value| f64::from(value) / 100.0);
                let mut status = status();
                status.cpu = Some(CpuInfo { total: Some(8.0), utilization_rate: hundredths(cpu) });
                let mut one = device(&mut status).clone();
                one.temperature = hundredths(temperature);
                one.power_w = hundredths(power);
                one.memory = Some(DeviceMemory { used: used.map(u64::from), ..DeviceMemory::default() });
                status.gpu_devices = Some(vec![one; devices]);
                status
            },
        );
        proptest::collection::vec(look, 1..12)
    }

    proptest! {
        #[test]
        fn the_server_ends_up_with_what_the_worker_saw(looks in looks()) {
            let mut reporter = Reporter::new();
            let mut server: Option<WorkerStatus> = None;
            for look in &looks {
                match reporter.tell(look, Precision::Exact).unwrap() {
                    Some(Told::Facts(facts)) => server = Some(facts.unpack().unwrap()),
                    Some(Told::Readings(readings)) => apply(&readings, server.as_mut().unwrap()).unwrap(),
                    other => prop_assert!(other.is_none(), "{other:?}"),
                }
                prop_assert_eq!(server.as_ref(), Some(look));
            }
        }
    }
}
