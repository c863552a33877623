//! The frames of tests/contract/frames.json, which all hand-written codecs share. FIRN_FRAMES is its path.

use serde_json::{json, Value};

use super::*;
use crate::error::LeaseFault;
use crate::layout::IdCheck;

/// Returns a table beside the frames; None in a packed crate, which does not contain them.
pub(crate) fn table(name: &str) -> Option<Value> {
    let given = std::env::var("FIRN_FRAMES").ok();
    let path = given
        .clone()
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/contract/frames.json").into());
    let path = path.replace("frames.json", name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(fault) => {
            assert!(given.is_none(), "{path}: {fault}");
            eprintln!("not checked: {path}: {fault}");
            None
        }
    }
}

fn frames_of(kind: &str) -> Vec<Value> {
    let Some(frames) = table("frames.json") else { return Vec::new() };
    let of_leases = frames[format!("lease_{kind}")].as_array().unwrap();
    frames[kind].as_array().unwrap().iter().chain(of_leases).cloned().collect()
}

fn bytes_of(one: &Value) -> Vec<u8> {
    let hex = one["frame"].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A request of any method, with the values that it refers to.
#[derive(Default)]
struct Asked {
    lease: LeaseAsk,
    renewal: LeaseRenewal,
    end: LeaseEnd,
}

impl Asked {
    fn new(one: &Value) -> Asked {
        let arguments = &one["arguments"];
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let int = |name: &str| arguments[name].as_i64().map(|value| i32::try_from(value).unwrap());
        let (clock_ms, ahead_ms) = (number(&arguments["clock_ms"]), int("ahead_ms"));
        let (lease, turn, acknowledged) = (text("lease"), text("turn"), text("acknowledged"));
        Asked {
            lease: LeaseAsk { token: text("token"), name: text("name"), clock_ms, ahead_ms, rack: int("rack") },
            end: LeaseEnd {
                lease: lease.clone(),
                turn: turn.clone(),
                used_tick: arguments.get("used_tick").map(number),
            },
            renewal: LeaseRenewal { lease, turn, acknowledged, clock_ms, ahead_ms },
        }
    }
}

fn ask_of<'a>(one: &'a Value, asked: &'a Asked) -> Ask<'a> {
    let arguments = &one["arguments"];
    let tag = arguments["tag"].as_str().unwrap_or_default();
    let count = arguments["count"].as_i64().unwrap_or_default();
    match one["method"].as_str().unwrap() {
        "getId" => Ask::Id { tag },
        "getIds" => Ask::Ids { tag, count: count.try_into().unwrap() },
        "getRuns" => Ask::Runs { tag, count },
        "getText" => Ask::Text { tag },
        "status" => Ask::Status,
        "servers" => Ask::Servers { known: number(&arguments["known_version"]) },
        "lease" => Ask::Lease(&asked.lease),
        "renewLease" => Ask::RenewLease(&asked.renewal),
        "releaseLease" => Ask::ReleaseLease(&asked.end),
        other => panic!("no call of {other}"),
    }
}

/// Numbers that JavaScript would round are text.
fn number(value: &Value) -> i64 {
    value.as_str().map_or(value.as_i64().unwrap_or_default(), |text| text.parse().unwrap())
}

fn sequence_of(one: &Value) -> i32 {
    one["sequence"].as_i64().unwrap().try_into().unwrap()
}

/// Returns a result as frames.json has it.
fn told(answer: &Answer) -> Value {
    match answer {
        Answer::Id(id) => json!(id.to_string()),
        Answer::Ids(ids) => ids.iter().map(|id| json!(id.to_string())).collect(),
        Answer::Runs(runs) => {
            runs.iter().map(|run| json!([run.first.to_string(), run.count, run.stride.to_string()])).collect()
        }
        Answer::Text(text) => json!(text),
        Answer::Released => json!({}),
        Answer::Lease(terms) => json!({
            "lease": terms.lease, "number": terms.number.to_string(), "machine": terms.machine,
            "worker": terms.worker, "rack": terms.rack, "base_bits": terms.base_bits.to_string(),
            "tick_shift": terms.tick_shift, "sequence_shift": terms.sequence_shift,
            "sequence_bits": terms.sequence_bits, "sequence_from": terms.sequence_from.to_string(),
            "sequence_count": terms.sequence_count.to_string(), "tick_ms": terms.tick_ms,
            "epoch_ms": terms.epoch_ms.to_string(), "from_tick": terms.from_tick.to_string(),
            "until_tick": terms.until_tick.to_string(), "renew_in_ms": terms.renew_in_ms,
            "ending": terms.ending, "server": terms.server,
        }),
        Answer::Status(status) => json!({
            "cluster_uuid": status.cluster_uuid, "layout": status.layout, "state": status.state.0,
            "wall_ms": status.wall_ms.to_string(),
            "tags": status.tags.iter().map(|one| {
                json!({"tag": one.tag, "strategy": one.strategy, "as_issued": one.as_issued})
            }).collect::<Value>(),
        }),
        Answer::Servers(list) => json!({
            "version": list.version.to_string(), "ask_again_ms": list.ask_again_ms,
            "servers": list.servers.iter().map(|one| {
                json!({"address": one.address, "rack": one.rack, "weight": one.weight, "online": one.online,
                       "state": one.state.0, "tls": one.tls})
            }).collect::<Value>(),
        }),
    }
}

/// Returns a refusal of a method of leases as frames.json has it. Faults of later versions count as NO_LEASES.
fn told_fault(fault: &LeaseFault, message: &str) -> Value {
    let (number, server) = match fault {
        LeaseFault::UnknownLease => (1, ""),
        LeaseFault::Outdated => (2, ""),
        LeaseFault::Revoked => (3, ""),
        LeaseFault::AnotherServers(server) => (4, server.as_str()),
        LeaseFault::NoLeases => (5, ""),
    };
    json!({"fault": number, "message": message, "server": server})
}

/// Returns what a connection makes of these bytes, as frames.json has it.
fn outcome(one: &Value, bytes: &[u8]) -> Value {
    let size = match frame_size(bytes) {
        Err(failure) => return json!({"broken": failure.end == End::Broken}),
        Ok(size) => size.filter(|size| bytes.len() >= 4 + size),
    };
    let Some(size) = size else { return json!({"incomplete": true}) };
    let asked = Asked::new(one);
    let ask = ask_of(one, &asked);
    match read_answer(&bytes[4..4 + size], &ask, sequence_of(one)) {
        Ok(answer) => match IdCheck::new(&Status::default()).fault_of(&answer, &ask) {
            Some(_) => json!({"broken": true}),
            None => json!({"answer": told(&answer)}),
        },
        Err(Failure { lease: Some(fault), detail, .. }) => json!({"lease_refusal": told_fault(&fault, &detail)}),
        Err(failure) if failure.lacks_method => json!({"lacks_method": true}),
        Err(failure) if failure.end == End::Refused => json!({"refusal": {
            "reason": failure.reason.unwrap() as i32, "message": failure.detail,
            "retry_after_ms": failure.retry_after.as_millis() as u64,
            "another_server_may_help": failure.another_may_help,
        }}),
        Err(failure) => json!({"broken": failure.end == End::Broken}),
    }
}

#[test]
fn writes_the_requests() {
    for one in frames_of("requests") {
        let mut out = Vec::new();
        ask_of(&one, &Asked::new(&one)).write(sequence_of(&one), &mut out);
        assert_eq!(out, bytes_of(&one), "{}", one["case"]);
    }
}

#[test]
fn reads_the_answers() {
    for mut one in frames_of("answers") {
        let got = outcome(&one, &bytes_of(&one));
        if one["lease_refusal"]["fault"] == json!(0) {
            one["lease_refusal"]["fault"] = json!(5);
        }
        let fields = one.as_object_mut().unwrap();
        let case = fields.remove("case");
        let wanted = fields.clone().into_iter();
        let wanted =
            wanted.filter(|(key, _)| !["method", "sequence", "arguments", "frame"].contains(&key.as_str()));
        assert_eq!(got, Value::Object(wanted.collect()), "{case:?}");
    }
}

#[test]
fn reads_no_further_than_the_end_of_a_frame() {
    for one in frames_of("answers") {
        let (bytes, asked) = (bytes_of(&one), Asked::new(&one));
        let ask = ask_of(&one, &asked);
        for end in 4..bytes.len() {
            let outcome = read_answer(&bytes[4..end], &ask, sequence_of(&one));
            assert!(outcome.is_err(), "{} cut at {end}", one["case"]);
        }
    }
}

#[test]
fn survives_every_changed_byte() {
    for one in frames_of("answers") {
        let (bytes, asked) = (bytes_of(&one), Asked::new(&one));
        let ask = ask_of(&one, &asked);
        for at in 4..bytes.len() {
            for value in [0, 1, 0x0b, 0x0c, 0x0f, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = read_answer(&changed[4..], &ask, sequence_of(&one)); // must return
            }
        }
    }
}
