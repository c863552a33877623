//! Which ids a server can have issued: the layout of the cluster's ids, and the server's clock.

use std::collections::HashSet;
use std::time::Instant;

use crate::error::printable;
use crate::wire::{Answer, Ask, Run, Status};

const DEFAULT_EPOCH_MS: i64 = 1_704_067_200_000;
const SLACK_MS: i128 = 24 * 3_600_000;

const NAMED: [(&str, &str); 5] = [
    ("firn", "time:41 machine:10 sequence:12"),
    ("twitter", "time:41 machine:10 sequence:12 epoch:1288834974657"),
    ("vesta-max-peak", "version:1 type:1=0 method:2 time:30s sequence:20 machine:10 epoch:1420041600000"),
    ("vesta-min-granularity", "version:1 type:1=1 method:2 time:40 sequence:10 machine:10 epoch:1420041600000"),
    ("js-safe", "time:41 machine:6 sequence:6"),
];

/// The position of the time in an id, and the bits that never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) tick_ms: i64,
    pub(crate) epoch_ms: i64,
    pub(crate) fixed_mask: u64,
    pub(crate) fixed_bits: u64,
    pub(crate) time_shift: u32,
    pub(crate) time_mask: u64,
    signed: bool,
}

impl Layout {
    /// Parses a layout's name or text. None: a layout of a newer server, or not a layout.
    pub(crate) fn parse(text: &str) -> Option<Layout> {
        let text = NAMED.iter().find(|(name, _)| *name == text).map_or(text, |(_, text)| *text);
        let mut layout = Layout {
            tick_ms: 1,
            epoch_ms: DEFAULT_EPOCH_MS,
            fixed_mask: 0,
            fixed_bits: 0,
            time_shift: 0,
            time_mask: 0,
            signed: false,
        };
        let mut shift = 0;
        for token in text.split_whitespace().rev() {
            let (name, value) = token.split_once(':')?;
            if name == "epoch" {
                layout.epoch_ms = parse_epoch(value)?;
            } else {
                shift += layout.field(name, value, shift)?;
            }
        }
        if layout.time_mask == 0 {
            return None;
        }
        if shift < 64 {
            layout.fixed_mask |= u64::MAX << shift;
        }
        Some(layout)
    }

    /// Adds the field that begins at bit `shift`, and returns its width.
    fn field(&mut self, name: &str, value: &str, shift: u32) -> Option<u32> {
        if name == "time" {
            let (value, unit_ms) = match value.strip_suffix("ms") {
                Some(value) => (value, 1),
                None => value.strip_suffix('s').map_or((value, 1), |value| (value, 1000)),
            };
            let (width, ticks) = value.split_once('@').unwrap_or((value, "1"));
            let width = width_of(width, shift)?;
            self.tick_ms = ticks.parse::<i64>().ok()?.checked_mul(unit_ms)?;
            self.time_shift = shift;
            self.time_mask = mask(width);
            return Some(width);
        }
        let (digits, constant) = value.split_once('=').unwrap_or((value, "0"));
        let width = width_of(digits, shift)?;
        if name == "zero" || name == "type" {
            self.fixed_mask |= mask(width) << shift;
            self.fixed_bits |= constant.parse::<u64>().ok()? << shift;
        }
        self.signed |= name == "version" && shift + width == 64;
        Some(width)
    }
}

/// Parses the width of a field that begins at bit `shift`, at least one bit.
fn width_of(text: &str, shift: u32) -> Option<u32> {
    text.parse().ok().filter(|width| *width >= 1 && *width <= 64 - shift)
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Parses milliseconds since 1970, or a date or time of RFC 3339 in UTC.
fn parse_epoch(text: &str) -> Option<i64> {
    if let Ok(ms) = text.parse() {
        return Some(ms);
    }
    let (date, time) = text.split_once(['T', 't']).unwrap_or((text, "00:00:00Z"));
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let time = time.strip_suffix(['Z', 'z'])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = time.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let ms: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    // Days since 1970-01-01 of the proleptic Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + day_of_era - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + ms)
}

/// Checks ids by a server's status at the start of a connection.
#[derive(Debug)]
pub(crate) struct IdCheck {
    layout: Option<Layout>,
    /// Tags whose ids contain a time and are not obfuscated.
    timed: HashSet<String>,
    wall_ms: i64,
    at: Instant,
}

impl IdCheck {
    pub(crate) fn new(status: &Status) -> IdCheck {
        let timed = status.tags.iter().filter(|tag| tag.strategy == "snowflake" && tag.as_issued);
        IdCheck {
            layout: Layout::parse(&status.layout),
            timed: timed.map(|tag| tag.tag.clone()).collect(),
            wall_ms: status.wall_ms,
            at: Instant::now(),
        }
    }

    /// Returns a sentence if the server cannot have sent this answer.
    pub(crate) fn fault_of(&self, answer: &Answer, ask: &Ask<'_>) -> Option<String> {
        match answer {
            Answer::Id(id) => self.fault_of_id(*id, ask.tag()),
            Answer::Ids(ids) => fault_of_ids(ids, ask.count()).or_else(|| self.fault_of_each(ids, ask.tag())),
            Answer::Runs(runs) => match ends_of(runs, ask.count()) {
                Ok(ends) => self.fault_of_each(&ends, ask.tag()),
                Err(fault) => Some(fault),
            },
            Answer::Text(text) if text.is_empty() => Some("its text is empty".to_owned()),
            Answer::Text(text) if text.chars().any(char::is_control) => {
                Some("its text has a control character".to_owned())
            }
            Answer::Lease(terms) if !is_readable(&terms.lease) || !is_readable(&terms.server) => {
                Some("a text of its lease is not printable".to_owned())
            }
            Answer::Text(_) | Answer::Status(_) | Answer::Servers(_) | Answer::Lease(_) | Answer::Released => None,
        }
    }

    fn fault_of_each(&self, ids: &[i64], tag: &str) -> Option<String> {
        ids.iter().find_map(|id| self.fault_of_id(*id, tag))
    }

    fn fault_of_id(&self, id: i64, tag: &str) -> Option<String> {
        let layout = self.layout.as_ref();
        if id == 0 || (id < 0 && !layout.is_some_and(|layout| layout.signed)) {
            return Some(format!("no id is {id}"));
        }
        let layout = layout.filter(|_| self.timed.contains(tag))?;
        if id as u64 & layout.fixed_mask != layout.fixed_bits {
            return Some(format!("{id} cannot be an id of this cluster: a fixed bit of the layout differs"));
        }
        let ticks = id as u64 >> layout.time_shift & layout.time_mask;
        let now_ms = i128::from(self.wall_ms) + self.at.elapsed().as_millis() as i128;
        let time_ms = i128::from(layout.epoch_ms) + i128::from(ticks) * i128::from(layout.tick_ms);
        if (time_ms - now_ms).abs() > SLACK_MS {
            return Some(format!(
                "{id} cannot be an id of this cluster: its time is more than a day from the clock"
            ));
        }
        None
    }
}

/// Returns whether the text has no control character, and was UTF-8.
fn is_readable(text: &str) -> bool {
    printable(text) == text && !text.contains(char::REPLACEMENT_CHARACTER)
}

fn fault_of_ids(ids: &[i64], count: i64) -> Option<String> {
    if ids.len() as i64 != count {
        return Some(format!("it gave {} ids, not {count}", ids.len()));
    }
    // Most answers ascend, which needs no set.
    let ascending = ids.windows(2).all(|pair| pair[0] < pair[1]);
    let mut seen = HashSet::with_capacity(if ascending { 0 } else { ids.len() });
    if !ascending && !ids.iter().all(|id| seen.insert(*id)) {
        return Some("its answer contains an id twice".to_owned());
    }
    None
}

/// Returns the first and last id of each run, or a sentence if they are not `count` ids in ascending order.
fn ends_of(runs: &[Run], count: i64) -> Result<Vec<i64>, String> {
    let (mut total, mut ends) = (0i64, Vec::with_capacity(2 * runs.len()));
    for run in runs {
        if run.count < 1 || run.stride < 1 || ends.last().is_some_and(|last| run.first <= *last) {
            return Err("a run is empty, or does not ascend".to_owned());
        }
        let last = run.stride.checked_mul(i64::from(run.count) - 1).and_then(|steps| run.first.checked_add(steps));
        let last = last.ok_or("a run has an id of more than 64 bits")?;
        total += i64::from(run.count);
        ends.extend([run.first, last]);
    }
    if total != count {
        return Err(format!("its runs hold {total} ids, not {count}"));
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::TagStatus;

    fn check(layout: &str, wall_ms: i64) -> IdCheck {
        let tag =
            |name: &str, strategy: &str| TagStatus { tag: name.into(), strategy: strategy.into(), as_issued: true };
        IdCheck::new(&Status {
            layout: layout.into(),
            wall_ms,
            tags: vec![tag("order", "snowflake"), tag("count", "segment")],
            ..Status::default()
        })
    }

    #[test]
    fn every_named_layout_is_valid() {
        for (name, _) in NAMED {
            assert!(Layout::parse(name).is_some(), "{name}");
        }
    }

    #[test]
    fn invalid_layouts_are_refused() {
        for wrong in ["", "time", "time:0", "time:65", "time:41x", "machine:10", "time:60 machine:10", "time:4@x"] {
            assert_eq!(Layout::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn fields_have_units_constants_and_epochs() {
        let layout = Layout::parse("zero:1 time:33@10ms machine:10 sequence:20 epoch:2024-01-01").unwrap();
        assert_eq!((layout.tick_ms, layout.epoch_ms), (10, DEFAULT_EPOCH_MS));
        assert_eq!(layout.fixed_mask, 1 << 63);
        let layout = Layout::parse("vesta-max-peak").unwrap();
        assert_eq!((layout.tick_ms, layout.signed), (1000, true));
    }

    #[test]
    fn epochs_are_milliseconds_dates_or_times() {
        assert_eq!(parse_epoch("12"), Some(12));
        assert_eq!(parse_epoch("2024-01-01"), Some(DEFAULT_EPOCH_MS));
        assert_eq!(parse_epoch("2010-11-04T01:42:54.657Z"), Some(1_288_834_974_657));
        assert_eq!(parse_epoch("2024-02-29T00:00:00Z"), Some(1_709_164_800_000));
        assert_eq!(parse_epoch("2024-13-01"), None);
        assert_eq!(parse_epoch("yesterday"), None);
    }

    #[test]
    fn ids_of_a_wrong_time_or_sign_are_refused() {
        let now_ms = DEFAULT_EPOCH_MS + 1_000_000_000;
        let check = check("firn", now_ms);
        let fault = |id: i64, tag: &str| check.fault_of(&Answer::Id(id), &Ask::Id { tag });
        let id = |ms: i64| (ms - DEFAULT_EPOCH_MS) << 22 | 5;
        assert_eq!(fault(id(now_ms), "order"), None);
        assert!(fault(id(now_ms + 90_000_000), "order").unwrap().contains("a day from the clock"));
        assert!(fault(id(now_ms - 90_000_000), "order").is_some());
        assert_eq!(fault(7, "count"), None);
        assert!(fault(0, "count").is_some());
        assert!(fault(-7, "count").is_some());
    }

    #[test]
    fn ids_of_an_unknown_layout_are_checked_for_their_sign_only() {
        let check = check("time:41 novelty:x", 0);
        let fault = |id: i64| check.fault_of(&Answer::Id(id), &Ask::Id { tag: "order" });
        assert_eq!(fault(7), None);
        assert!(fault(-7).is_some());
    }

    #[test]
    fn wrong_counts_and_equal_ids_are_refused() {
        assert_eq!(fault_of_ids(&[3, 1, 2], 3), None);
        assert!(fault_of_ids(&[1, 2], 3).unwrap().contains("2 ids, not 3"));
        assert!(fault_of_ids(&[1, 2, 1], 3).unwrap().contains("twice"));
    }

    #[test]
    fn runs_must_ascend_and_hold_the_count() {
        let run = |first, count, stride| Run { first, count, stride };
        assert_eq!(ends_of(&[run(1, 3, 2), run(6, 1, 1)], 4), Ok(vec![1, 5, 6, 6]));
        for (runs, count) in [
            (vec![run(1, 0, 1)], 0),
            (vec![run(1, 2, 0)], 2),
            (vec![run(1, 3, 2), run(5, 1, 1)], 4),
            (vec![run(1, 3, 1)], 4),
            (vec![run(i64::MAX - 1, 3, 1)], 3),
            (vec![run(1, i32::MAX, i64::MAX)], i64::from(i32::MAX)),
        ] {
            assert!(ends_of(&runs, count).is_err(), "{runs:?}");
        }
    }

    #[test]
    fn texts_must_be_printable() {
        let check = check("firn", 0);
        let fault = |text: &str| check.fault_of(&Answer::Text(text.into()), &Ask::Text { tag: "order" });
        assert_eq!(fault("ORD-1"), None);
        assert!(fault("").is_some() && fault("1\u{1b}[2J").is_some());
    }
}
