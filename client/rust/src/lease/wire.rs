//! The methods of `firn.thrift` for leases of machine ids.

use crate::codec::*;
use crate::error::{End, Failure, LeaseFault};

/// A request for a lease. The same token gets the same lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseAsk {
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) clock_ms: i64,
    pub(crate) ahead_ms: Option<i32>,
    pub(crate) rack: Option<i32>,
}

/// A request for a later end.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseRenewal {
    pub(crate) lease: String,
    /// New for each renewal, the same in its repetitions.
    pub(crate) turn: String,
    /// The turn of the last answer; empty: there was none.
    pub(crate) acknowledged: String,
    pub(crate) clock_ms: i64,
    pub(crate) ahead_ms: Option<i32>,
}

/// Gives a lease back.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseEnd {
    pub(crate) lease: String,
    /// The last one sent, answered or not; empty: none was.
    pub(crate) turn: String,
    /// The highest tick used; None: unknown.
    pub(crate) used_tick: Option<i64>,
}

/// A lease as a server sent it. Its holder may issue the ids
/// `base_bits | tick << tick_shift | sequence << sequence_shift` for every tick in `from_tick..until_tick` and every
/// sequence in `sequence_from..sequence_from + sequence_count`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseTerms {
    /// Secret; names its server.
    pub(crate) lease: String,
    pub(crate) number: i64,
    pub(crate) machine: i32,
    pub(crate) worker: i32,
    pub(crate) rack: i32,
    pub(crate) base_bits: i64,
    pub(crate) tick_shift: i32,
    pub(crate) sequence_shift: i32,
    pub(crate) sequence_bits: i32,
    pub(crate) sequence_from: i64,
    pub(crate) sequence_count: i64,
    pub(crate) tick_ms: i32,
    pub(crate) epoch_ms: i64,
    pub(crate) from_tick: i64,
    pub(crate) until_tick: i64,
    pub(crate) renew_in_ms: i32,
    /// It is extended no further.
    pub(crate) ending: bool,
    /// Address of the server that has the lease.
    pub(crate) server: String,
}

impl LeaseTerms {
    /// Returns when the lease ends, in microseconds since 1970. The terms may be wrong in every respect.
    pub(crate) fn end_us(&self) -> i64 {
        let since_epoch_ms = self.until_tick.saturating_mul(i64::from(self.tick_ms));
        self.epoch_ms.saturating_add(since_epoch_ms).saturating_mul(1000)
    }
}

impl LeaseAsk {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_field(STRUCT, 1, &[], out);
        write_text(1, &self.token, out);
        write_text(2, &self.name, out);
        write_field(I64, 3, &self.clock_ms.to_be_bytes(), out);
        write_i32(4, self.ahead_ms, out);
        write_i32(5, self.rack, out);
        out.push(STOP);
    }
}

impl LeaseRenewal {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_field(STRUCT, 1, &[], out);
        write_text(1, &self.lease, out);
        write_text(2, &self.turn, out);
        write_text(3, &self.acknowledged, out);
        write_field(I64, 4, &self.clock_ms.to_be_bytes(), out);
        write_i32(5, self.ahead_ms, out);
        out.push(STOP);
    }
}

impl LeaseEnd {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_field(STRUCT, 1, &[], out);
        write_text(1, &self.lease, out);
        write_text(2, &self.turn, out);
        if let Some(tick) = self.used_tick {
            write_field(I64, 3, &tick.to_be_bytes(), out);
        }
        out.push(STOP);
    }
}

fn write_i32(id: i16, value: Option<i32>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        write_field(I32, id, &value.to_be_bytes(), out);
    }
}

impl Reader<'_> {
    pub(crate) fn lease_terms(&mut self) -> Parsed<LeaseTerms> {
        let mut terms = LeaseTerms::default();
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (1, STRING) => terms.lease = reader.string()?,
                (2, I64) => terms.number = reader.i64()?,
                (3, I32) => terms.machine = reader.i32()?,
                (4, I32) => terms.worker = reader.i32()?,
                (5, I32) => terms.rack = reader.i32()?,
                (6, I64) => terms.base_bits = reader.i64()?,
                (7, I32) => terms.tick_shift = reader.i32()?,
                (8, I32) => terms.sequence_shift = reader.i32()?,
                (9, I32) => terms.sequence_bits = reader.i32()?,
                (10, I64) => terms.sequence_from = reader.i64()?,
                (11, I64) => terms.sequence_count = reader.i64()?,
                (12, I32) => terms.tick_ms = reader.i32()?,
                (13, I64) => terms.epoch_ms = reader.i64()?,
                (14, I64) => terms.from_tick = reader.i64()?,
                (15, I64) => terms.until_tick = reader.i64()?,
                (16, I32) => terms.renew_in_ms = reader.i32()?,
                (17, BOOL) => terms.ending = reader.u8()? != 0,
                (18, STRING) => terms.server = reader.string()?,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        Ok(terms)
    }

    pub(crate) fn lease_refusal(&mut self) -> Parsed<Failure> {
        let (mut fault, mut message, mut server) = (0, String::new(), String::new());
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (1, I32) => fault = reader.i32()?,
                (2, STRING) => message = reader.string()?,
                (3, STRING) => server = reader.string()?,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        let fault = match fault {
            1 => LeaseFault::UnknownLease,
            2 => LeaseFault::Outdated,
            3 => LeaseFault::Revoked,
            4 => LeaseFault::AnotherServers(server),
            _ => LeaseFault::NoLeases,
        };
        Ok(Failure { lease: Some(fault), ..Failure::new(End::Refused, message) })
    }
}
