//! The calls and answers of `firn.thrift` in Thrift's framed binary protocol.

use crate::codec::*;
use crate::error::{End, Failure, Reason};
use crate::lease::wire::{LeaseAsk, LeaseEnd, LeaseRenewal, LeaseTerms};

/// The longest frame that is accepted.
const FRAME_MAX: usize = 16 << 20;
const VERSION: u32 = 0x8001_0000;
const CALL: u8 = 1;
const REPLY: u8 = 2;
const EXCEPTION: u8 = 3;
const UNKNOWN_METHOD: i32 = 1;
/// A method of the wire contract with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask<'a> {
    Id { tag: &'a str },
    Ids { tag: &'a str, count: i32 },
    Runs { tag: &'a str, count: i64 },
    Text { tag: &'a str },
    Status,
    Servers { known: i64 },
    Lease(&'a LeaseAsk),
    RenewLease(&'a LeaseRenewal),
    ReleaseLease(&'a LeaseEnd),
}

impl<'a> Ask<'a> {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Ask::Id { .. } => "getId",
            Ask::Ids { .. } => "getIds",
            Ask::Runs { .. } => "getRuns",
            Ask::Text { .. } => "getText",
            Ask::Status => "status",
            Ask::Servers { .. } => "servers",
            Ask::Lease(_) => "lease",
            Ask::RenewLease(_) => "renewLease",
            Ask::ReleaseLease(_) => "releaseLease",
        }
    }

    pub(crate) fn tag(&self) -> &'a str {
        match self {
            Ask::Id { tag } | Ask::Ids { tag, .. } | Ask::Runs { tag, .. } | Ask::Text { tag } => tag,
            _ => "",
        }
    }

    fn is_of_lease(&self) -> bool {
        matches!(self, Ask::Lease(_) | Ask::RenewLease(_) | Ask::ReleaseLease(_))
    }

    /// Returns how many ids are asked for.
    pub(crate) fn count(&self) -> i64 {
        match *self {
            Ask::Ids { count, .. } => i64::from(count),
            Ask::Runs { count, .. } => count,
            _ => 1,
        }
    }

    /// Appends the request with its frame's length to `out`.
    pub(crate) fn write(&self, sequence: i32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; 4]);
        out.extend((VERSION | u32::from(CALL)).to_be_bytes());
        write_string(self.method(), out);
        out.extend(sequence.to_be_bytes());
        match *self {
            Ask::Id { tag } | Ask::Text { tag } => write_tag(tag, out),
            Ask::Ids { tag, count } => {
                write_tag(tag, out);
                write_field(I32, 2, &count.to_be_bytes(), out);
            }
            Ask::Runs { tag, count } => {
                write_tag(tag, out);
                write_field(I64, 2, &count.to_be_bytes(), out);
            }
            Ask::Servers { known } => write_field(I64, 1, &known.to_be_bytes(), out),
            Ask::Status => {}
            Ask::Lease(ask) => ask.write(out),
            Ask::RenewLease(renewal) => renewal.write(out),
            Ask::ReleaseLease(end) => end.write(out),
        }
        out.push(STOP);
        let size = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }
}

fn write_tag(tag: &str, out: &mut Vec<u8>) {
    write_text(1, tag, out);
}

/// Ids in compact form: `first`, `first + stride`, ...
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: i64,
    pub(crate) count: i32,
    pub(crate) stride: i64,
}

/// The state of a server; the numbers are those of the contract, and 0 is an absent or unknown state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State(pub(crate) i32);

impl State {
    pub(crate) const NOT_READY: State = State(1);
    pub(crate) const READY: State = State(2);
    pub(crate) const OFFLINE: State = State(3);
    pub(crate) const DRAINING: State = State(4);
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TagStatus {
    pub(crate) tag: String,
    pub(crate) strategy: String,
    pub(crate) as_issued: bool,
}

/// What a client needs of a server's status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) cluster_uuid: String,
    pub(crate) layout: String,
    pub(crate) state: State,
    pub(crate) wall_ms: i64,
    pub(crate) tags: Vec<TagStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) address: String,
    pub(crate) rack: i32,
    pub(crate) weight: i32,
    pub(crate) online: bool,
    pub(crate) state: State,
    pub(crate) tls: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerList {
    pub(crate) version: i64,
    pub(crate) servers: Vec<Entry>,
    pub(crate) ask_again_ms: i32,
}

/// The result of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Id(i64),
    Ids(Vec<i64>),
    Runs(Vec<Run>),
    Text(String),
    Status(Status),
    Servers(ServerList),
    Lease(Box<LeaseTerms>),
    Released,
}

/// Returns the size of the frame that begins with these bytes, without its length. None: more bytes must come.
pub(crate) fn frame_size(input: &[u8]) -> Result<Option<usize>, Failure> {
    let Some(head) = input.get(..4) else { return Ok(None) };
    if head[..2] == [0x15, 3] {
        return Err(Failure::new(End::Broken, "it speaks TLS"));
    }
    match u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize {
        size if (1..=FRAME_MAX).contains(&size) => Ok(Some(size)),
        _ => Err(Failure::new(End::Broken, "it does not speak Thrift")),
    }
}

/// Reads the answer to `ask` from a frame without its length.
pub(crate) fn read_answer(frame: &[u8], ask: &Ask<'_>, sequence: i32) -> Result<Answer, Failure> {
    match parse_answer(frame, ask, sequence) {
        Ok(outcome) => outcome,
        Err(Malformed(why)) => Err(Failure::new(End::Broken, format!("its answer cannot be read: {why}"))),
    }
}

fn parse_answer(frame: &[u8], ask: &Ask<'_>, sequence: i32) -> Parsed<Result<Answer, Failure>> {
    let mut reader = Reader { rest: frame };
    let version = reader.i32()? as u32;
    if version & 0xffff_ff00 != VERSION {
        return Err(Malformed("its protocol version is unknown"));
    }
    let (kind, name, got_sequence) = (version as u8, reader.bytes()?, reader.i32()?);
    if !matches!(kind, REPLY | EXCEPTION) || got_sequence != sequence {
        return Ok(Err(Failure::new(End::Broken, "its answer does not belong to the request")));
    }
    if kind == EXCEPTION {
        return reader.exception().map(Err);
    }
    if name != ask.method().as_bytes() {
        return Ok(Err(Failure::new(End::Broken, "its answer does not belong to the request")));
    }
    let (mut success, mut refusal) = (None, None);
    reader.fields(|reader, id, kind| {
        match (id, kind) {
            (0, _) => success = reader.success(ask, kind)?,
            (1, STRUCT) => refusal = Some(reader.refusal()?),
            (2, STRUCT) if ask.is_of_lease() => refusal = Some(reader.lease_refusal()?),
            _ => reader.skip(kind, 0)?,
        }
        Ok(())
    })?;
    Ok(match (refusal, success) {
        (Some(refusal), _) => Err(refusal),
        (None, Some(answer)) => Ok(answer),
        (None, None) if matches!(ask, Ask::ReleaseLease(_)) => Ok(Answer::Released),
        (None, None) => Err(Failure::new(End::Broken, "its answer contains neither a result nor a refusal")),
    })
}

impl Reader<'_> {
    /// Reads a method's result; None if it has a type that the contract does not give it.
    fn success(&mut self, ask: &Ask<'_>, kind: u8) -> Parsed<Option<Answer>> {
        Ok(Some(match (ask, kind) {
            (Ask::Id { .. }, I64) => Answer::Id(self.i64()?),
            (Ask::Ids { .. }, LIST) => Answer::Ids(self.ids()?),
            (Ask::Runs { .. }, LIST) => Answer::Runs(self.structs(Reader::run)?),
            (Ask::Text { .. }, STRING) => Answer::Text(self.string()?),
            (Ask::Status, STRUCT) => Answer::Status(self.status()?),
            (Ask::Servers { .. }, STRUCT) => Answer::Servers(self.server_list()?),
            (Ask::Lease(_) | Ask::RenewLease(_), STRUCT) => Answer::Lease(Box::new(self.lease_terms()?)),
            _ => return self.skip(kind, 0).map(|()| None),
        }))
    }

    fn ids(&mut self) -> Parsed<Vec<i64>> {
        if self.u8()? != I64 {
            return Err(Malformed("a list has elements of another type"));
        }
        let count = self.count(8)?;
        let bytes = self.take(8 * count)?;
        Ok(bytes.chunks_exact(8).map(|id| id.iter().fold(0, |value, byte| value << 8 | i64::from(*byte))).collect())
    }

    fn run(&mut self) -> Parsed<Run> {
        let mut run = Run::default();
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (1, I64) => run.first = reader.i64()?,
                (2, I32) => run.count = reader.i32()?,
                (3, I64) => run.stride = reader.i64()?,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        Ok(run)
    }

    fn status(&mut self) -> Parsed<Status> {
        let mut status = Status::default();
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (1, STRING) => status.cluster_uuid = reader.string()?,
                (5, STRING) => status.layout = reader.string()?,
                (7, I32) => status.state = State(reader.i32()?),
                (10, I64) => status.wall_ms = reader.i64()?,
                (14, LIST) => status.tags = reader.structs(Reader::tag_status)?,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        Ok(status)
    }

    fn tag_status(&mut self) -> Parsed<TagStatus> {
        let mut tag = TagStatus::default();
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (1, STRING) => tag.tag = reader.string()?,
                (2, STRING) => tag.strategy = reader.string()?,
                (6, BOOL) => tag.as_issued = reader.u8()? != 0,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        Ok(tag)
    }

    fn server_list(&mut self) -> Parsed<ServerList> {
        let mut list = ServerList::default();
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (3, I64) => list.version = reader.i64()?,
                (4, LIST) => list.servers = reader.structs(Reader::entry)?,
                (6, I32) => list.ask_again_ms = reader.i32()?,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        Ok(list)
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let mut entry = Entry::default();
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (1, STRING) => entry.address = reader.string()?,
                (2, I32) => entry.rack = reader.i32()?,
                (3, I32) => entry.weight = reader.i32()?,
                (4, BOOL) => entry.online = reader.u8()? != 0,
                (5, I32) => entry.state = State(reader.i32()?),
                (6, BOOL) => entry.tls = reader.u8()? != 0,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        Ok(entry)
    }

    fn refusal(&mut self) -> Parsed<Failure> {
        let (mut reason, mut message, mut retry_after_ms, mut another) = (0, String::new(), 0, false);
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (1, I32) => reason = reader.i32()?,
                (2, STRING) => message = reader.string()?,
                (3, I32) => retry_after_ms = reader.i32()?,
                (4, BOOL) => another = reader.u8()? != 0,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        let mut failure = Failure::refused(Reason::from_wire(reason), &message);
        failure.retry_after = std::time::Duration::from_millis(u64::try_from(retry_after_ms).unwrap_or(0));
        failure.another_may_help = another;
        Ok(failure)
    }

    /// Reads a TApplicationException.
    fn exception(&mut self) -> Parsed<Failure> {
        let (mut message, mut code) = (String::new(), 0);
        self.fields(|reader, id, kind| {
            match (id, kind) {
                (1, STRING) => message = reader.string()?,
                (2, I32) => code = reader.i32()?,
                _ => reader.skip(kind, 0)?,
            }
            Ok(())
        })?;
        let lacks_method = code == UNKNOWN_METHOD;
        let end = if lacks_method { End::WrongService } else { End::Broken };
        Ok(Failure { lacks_method, ..Failure::new(end, format!("it does not know the method: {message}")) })
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
pub(crate) mod tests;
