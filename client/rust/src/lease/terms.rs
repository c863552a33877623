//! What a lease permits, after its terms were checked.

use std::time::{Duration, SystemTime};

use super::wire::LeaseTerms;
use crate::layout::Layout;
use crate::options::split_address;

const TIME_MAX_MS: i128 = 253_402_300_800_000; // the year 10000

/// The ids of one machine id with a tick in `from_tick..until_tick`, and the server that extends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Secret; names its server.
    pub(crate) id: String,
    pub(crate) server: String,
    pub(crate) machine: u32,
    pub(crate) base_bits: u64,
    pub(crate) shape: Shape,
    pub(crate) sequence_from: u64,
    pub(crate) sequence_count: u64,
    pub(crate) from_tick: i64,
    pub(crate) until_tick: i64,
    pub(crate) renew_in_us: i64,
    pub(crate) ending: bool,
}

/// The meaning of ticks and sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) tick_shift: u32,
    pub(crate) sequence_shift: u32,
    pub(crate) sequence_bits: u32,
    pub(crate) tick_us: i64,
    pub(crate) epoch_us: i64,
}

impl Shape {
    /// Returns when the tick begins, in microseconds since 1970.
    pub(crate) fn start_of(&self, tick: i64) -> i64 {
        self.epoch_us + tick * self.tick_us
    }

    /// Returns the tick of a time.
    pub(crate) fn tick_at(&self, time_us: i64) -> i64 {
        (time_us - self.epoch_us).div_euclid(self.tick_us)
    }
}

impl Lease {
    /// Checks the terms. Fails with a sentence if no id may be issued under them. `layout` is that of the cluster; None
    /// if this version cannot read it.
    pub(crate) fn read(terms: &LeaseTerms, layout: Option<&Layout>) -> Result<Lease, String> {
        if terms.lease.is_empty() || split_address(&terms.server).is_none() {
            return Err("it has no id, or no server".to_owned());
        }
        let end_ms = i128::from(terms.epoch_ms) + i128::from(terms.until_tick) * i128::from(terms.tick_ms);
        if terms.tick_ms < 1 || terms.epoch_ms < 0 || !(0..=TIME_MAX_MS).contains(&end_ms) {
            return Err("its time is impossible".to_owned());
        }
        if terms.from_tick < 0 || terms.until_tick <= terms.from_tick {
            return Err(format!("it is from tick {} to {}", terms.from_tick, terms.until_tick));
        }
        let fields = Fields::read(terms, layout)?;
        if let Some(layout) = layout {
            let same = (fields.tick_shift, i64::from(terms.tick_ms), terms.epoch_ms)
                == (layout.time_shift, layout.tick_ms, layout.epoch_ms);
            if !same {
                return Err("its ticks are not those of the layout".to_owned());
            }
            if terms.base_bits as u64 & layout.fixed_mask != layout.fixed_bits {
                return Err("a fixed bit of the layout differs".to_owned());
            }
        }
        Ok(Lease {
            id: terms.lease.clone(),
            server: terms.server.clone(),
            machine: u32::try_from(terms.machine).map_err(|_| "its machine id is negative".to_owned())?,
            base_bits: terms.base_bits as u64,
            shape: Shape {
                tick_shift: fields.tick_shift,
                sequence_shift: fields.sequence_shift,
                sequence_bits: fields.sequence_bits,
                tick_us: i64::from(terms.tick_ms) * 1000,
                epoch_us: terms.epoch_ms * 1000,
            },
            sequence_from: fields.sequence_from,
            sequence_count: fields.sequence_count,
            from_tick: terms.from_tick,
            until_tick: terms.until_tick,
            renew_in_us: i64::from(terms.renew_in_ms) * 1000,
            ending: terms.ending,
        })
    }

    /// Returns when the lease ends, in microseconds since 1970.
    pub(crate) fn end_us(&self) -> i64 {
        self.shape.start_of(self.until_tick)
    }

    /// Returns when the lease ends.
    pub(crate) fn until(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(self.end_us()).unwrap_or(0))
    }
}

/// The fields of an id, none of which overlaps another.
struct Fields {
    tick_shift: u32,
    sequence_shift: u32,
    sequence_bits: u32,
    sequence_from: u64,
    sequence_count: u64,
}

impl Fields {
    fn read(terms: &LeaseTerms, layout: Option<&Layout>) -> Result<Fields, String> {
        let shift = |value: i32| u32::try_from(value).ok().filter(|shift| *shift < 64);
        let bits = u32::try_from(terms.sequence_bits).ok().filter(|bits| *bits < 64);
        let (Some(tick_shift), Some(sequence_shift), Some(bits)) =
            (shift(terms.tick_shift), shift(terms.sequence_shift), bits)
        else {
            return Err("its fields are not in 64 bits".to_owned());
        };
        let (from, count) = (i128::from(terms.sequence_from), i128::from(terms.sequence_count));
        if from < 0 || count < 1 || from + count > 1i128 << bits {
            return Err(format!("its sequences {from} to {} are not in {bits} bits", from + count));
        }
        let sequence = mask(bits) << sequence_shift;
        let ticks = mask(128 - (terms.until_tick as u128 - 1).leading_zeros()) << tick_shift;
        let time = layout.map_or(ticks, |layout| u128::from(layout.time_mask) << layout.time_shift);
        if (sequence | time | ticks) > u128::from(u64::MAX) || ticks & !time != 0 {
            return Err("its ticks do not fit into the layout".to_owned());
        }
        if u128::from(terms.base_bits as u64) & (sequence | time) != 0 || sequence & time != 0 {
            return Err("its fields overlap".to_owned());
        }
        let (sequence_from, sequence_count) = (from as u64, count as u64);
        Ok(Fields { tick_shift, sequence_shift, sequence_bits: bits, sequence_from, sequence_count })
    }
}

fn mask(bits: u32) -> u128 {
    (1 << bits) - 1
}

/// Returns a time for people, such as `2026-11-26 12:00:00 UTC`.
pub(crate) fn utc(time_us: i64) -> String {
    let seconds = time_us.div_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The proleptic Gregorian calendar, with years that begin in March.
    let since_march_0 = days + 719_468;
    let era = since_march_0.div_euclid(146_097);
    let day_of_era = since_march_0.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year_of_era + carry;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}
