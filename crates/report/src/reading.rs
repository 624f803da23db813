//! Readings: the numbers in a status that move all the time. One walk over a status gives them an order, which both
//! sides share, so that a change is told by position.

use crate::message::Readings;
use api::WorkerStatus;
use thiserror::Error;

/// Percents, degrees and watts go over the wire in hundredths.
const HUNDREDTHS: f64 = 100.0;

/// A number that moves.
pub(crate) struct Reading<'a> {
    value: Value<'a>,
    /// A change of this much is worth telling although nobody looks, in the unit of the wire.
    pub tolerance: u64,
}

enum Value<'a> {
    /// Percent, degrees or watts.
    Float(&'a mut Option<f64>),
    /// Bytes.
    Bytes(&'a mut Option<u64>),
}

impl Reading<'_> {
    /// As it goes over the wire.
    pub fn get(&self) -> Option<i64> {
        match &self.value {
            #[expect(clippy::cast_possible_truncation, reason = "such a cast saturates, and NaN becomes 0")]
            Value::Float(value) => value.map(|value| (value * HUNDREDTHS).round() as i64),
            Value::Bytes(value) => value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)),
        }
    }

    fn set(self, told: Option<i64>) {
        match self.value {
            Value::Float(value) => *value = told.map(|told| told as f64 / HUNDREDTHS),
            // there are no negative sizes
            Value::Bytes(value) => *value = told.and_then(|told| u64::try_from(told).ok()),
        }
    }

    /// Takes it out of the status.
    pub fn clear(self) {
        self.set(None);
    }
}

/// Visits all readings in their order, which is part of the protocol: a new kind of reading goes behind the others of
/// its host or device only together with a new protocol version. Until then it is a fact like any other.
pub(crate) fn walk(status: &mut WorkerStatus, mut visit: impl FnMut(Reading<'_>)) {
    const PERCENT: u64 = 100;
    const DEGREES: u64 = 200;
    const WATTS: u64 = 500;
    /// A host's processors are never quite idle.
    const CPU_PERCENT: u64 = 500;

    let mut float = |value: &mut Option<f64>, tolerance| visit(Reading { value: Value::Float(value), tolerance });
    if let Some(cpu) = &mut status.cpu {
        float(&mut cpu.utilization_rate, CPU_PERCENT);
    }
    if let Some(memory) = &mut status.memory {
        float(&mut memory.utilization_rate, PERCENT);
    }
    if let Some(swap) = &mut status.swap {
        float(&mut swap.utilization_rate, PERCENT);
    }
    for device in status.gpu_devices.iter_mut().flatten() {
        float(&mut device.temperature, DEGREES);
        float(&mut device.power_w, WATTS);
        if let Some(core) = &mut device.core {
            float(&mut core.utilization_rate, PERCENT);
        }
        if let Some(memory) = &mut device.memory {
            float(&mut memory.utilization_rate, PERCENT);
        }
    }
    let mut bytes = |value: &mut Option<u64>, total: Option<u64>| {
        let tolerance = total.map_or(1, |total| (total / 100).max(1));
        visit(Reading { value: Value::Bytes(value), tolerance });
    };
    if let Some(memory) = &mut status.memory {
        bytes(&mut memory.used, memory.total);
    }
    if let Some(swap) = &mut status.swap {
        bytes(&mut swap.used, swap.total);
    }
    for file_system in status.filesystem.iter_mut().flatten() {
        bytes(&mut file_system.used, file_system.total);
        bytes(&mut file_system.free, file_system.total);
        bytes(&mut file_system.available, file_system.total);
    }
    for device in status.gpu_devices.iter_mut().flatten() {
        let total = device.memory.as_ref().and_then(|memory| memory.total);
        if let Some(memory) = &mut device.memory {
            bytes(&mut memory.used, total);
        }
        for process in device.processes.iter_mut().flatten() {
            bytes(&mut process.memory_bytes, total);
        }
    }
}

/// Readings name a place that the status does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the readings do not belong to the report before them")]
pub struct Misfit;

/// Puts readings into the status that they belong to. On an error nothing is changed.
pub fn apply(readings: &Readings, status: &mut WorkerStatus) -> Result<(), Misfit> {
    let mut count = 0_u32;
    walk(status, |_| count += 1);
    let changes = changes(readings, count)?;
    let (mut changes, mut position) = (changes.into_iter().peekable(), 0_u32);
    walk(status, |reading| {
        if let Some((_, told)) = changes.next_if(|(place, _)| *place == position) {
            reading.set(told);
        }
        position += 1;
    });
    Ok(())
}

/// What changes, by position. Positions of values grow by themselves; those of absent readings need not.
fn changes(readings: &Readings, count: u32) -> Result<Vec<(u32, Option<i64>)>, Misfit> {
    let mut changes = Vec::with_capacity(readings.values.len().min(count as usize));
    let (mut values, mut next) = (readings.values.iter(), 0_u32);
    for run in readings.runs.chunks(2) {
        let [skipped, length] = *run else { return Err(Misfit) };
        let begin = next.checked_add(skipped).ok_or(Misfit)?;
        next = begin.checked_add(length).filter(|end| *end <= count).ok_or(Misfit)?;
        for place in begin..next {
            changes.push((place, Some(*values.next().ok_or(Misfit)?)));
        }
    }
    if values.next().is_some() {
        return Err(Misfit);
    }
    for place in &readings.absent {
        if *place >= count {
            return Err(Misfit);
        }
        changes.push((*place, None));
    }
    changes.sort_by_key(|(place, _)| *place);
    let is_told_twice = changes.windows(2).any(|pair| matches!(pair, [(one, _), (other, _)] if one == other));
    if is_told_twice { Err(Misfit) } else { Ok(changes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reporter::tests::status;
    use proptest::prelude::*;

    fn readings(runs: &[u32], values: &[i64], absent: &[u32]) -> Readings {
        Readings { facts: 0, runs: runs.to_vec(), values: values.to_vec(), absent: absent.to_vec() }
    }

    #[test]
    fn readings_of_another_report_change_nothing() {
        let table = [
            readings(&[0], &[], &[]),
            readings(&[0, 1], &[], &[]),
            readings(&[0, 1], &[1, 2], &[]),
            readings(&[], &[1], &[]),
            readings(&[1_000, 1], &[1], &[]),
            readings(&[0, 1, u32::MAX, 1], &[1, 2], &[]),
            readings(&[0, u32::MAX], &[1], &[]),
            readings(&[], &[], &[1_000]),
            readings(&[2, 1], &[1], &[2]),
            readings(&[], &[], &[3, 3]),
        ];
        for told in table {
            let mut changed = status();
            assert_eq!(apply(&told, &mut changed), Err(Misfit), "{told:?}");
            assert_eq!(changed, status());
        }
    }

    #[test]
    fn a_value_lands_in_its_place_and_absence_is_not_zero() {
        let mut changed = status();
        apply(&readings(&[0, 1, 1, 1], &[1_250, 7_100], &[4]), &mut changed).unwrap();
        assert_eq!(changed.cpu.as_ref().unwrap().utilization_rate, Some(12.5));
        let device = &changed.gpu_devices.as_ref().unwrap()[0];
        assert_eq!((device.temperature, device.core.as_ref().unwrap().utilization_rate), (Some(71.0), None));
    }

    proptest! {
        #[test]
        fn no_readings_make_it_panic(
            runs in proptest::collection::vec(0u32..8, 0..20),
            values in proptest::collection::vec(any::<i64>(), 0..20),
            absent in proptest::collection::vec(0u32..30, 0..5),
        ) {
            let _ = apply(&readings(&runs, &values, &absent), &mut status());
        }
    }
}
