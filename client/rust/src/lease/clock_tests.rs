//! What a lessee does when the wall clock jumps.

use super::lessee::Outcome;
use super::rig::*;
use crate::error::{Error, ErrorKind};

const HOUR: i64 = 3600 * SECOND;

fn leased() -> Rig {
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig
}

fn renewed(rig: &mut Rig) {
    let now = rig.clock.now().wall_us / 1000;
    let mut extended = lease(7, NOON_MS, now + 60 * SECOND);
    extended.renew_in_us = 20_000_000;
    rig.answer_lease(Kind::Renewal, extended);
}

fn takes_an_id_of_now(rig: &mut Rig) {
    assert_eq!(tick_of(rig.take(1)[0]), rig.clock.now().wall_us / 1000 - EPOCH_MS);
}

/// The monotonic clock may lack the time for which the machine was suspended.
#[test]
fn a_renewal_confirms_a_jump_at_once() {
    let mut rig = leased();
    rig.pass(SECOND);
    rig.clock.step(HOUR);
    assert_eq!(rig.fault(), "the wall clock has jumped forward by 3600 s, and no server has confirmed it");
    rig.tick();
    assert_eq!(rig.count(Kind::Renewal), 1);
    assert_eq!(rig.newest(Kind::Renewal).clock_ms, NOON_MS + HOUR + SECOND);
    renewed(&mut rig);
    takes_an_id_of_now(&mut rig);
    rig.pass(SECOND);
    assert_eq!(rig.count(Kind::Renewal), 1);
}

#[test]
fn a_request_from_before_a_jump_confirms_nothing() {
    for first_is_lost in [false, true] {
        let mut rig = leased();
        rig.pass(20 * SECOND);
        assert_eq!(rig.count(Kind::Renewal), 1);
        if first_is_lost {
            rig.no_answer(Kind::Renewal, "10.0.0.7:7609", true);
            rig.clock.step(HOUR);
            rig.tick(); // the server may have received only the first sending
            assert_eq!(rig.count(Kind::Renewal), 2);
        } else {
            rig.clock.step(HOUR);
        }
        renewed(&mut rig);
        assert!(rig.fault().contains("jumped"));
        let sent = rig.count(Kind::Renewal);
        rig.pass(99);
        assert_eq!(rig.count(Kind::Renewal), sent);
        rig.pass(1);
        assert_eq!(rig.count(Kind::Renewal), sent + 1);
        renewed(&mut rig);
        takes_an_id_of_now(&mut rig);
    }
}

#[test]
fn a_jump_that_servers_refuse_is_not_followed() {
    let mut rig = leased();
    rig.pass(SECOND);
    rig.clock.step(HOUR);
    rig.tick();
    for times in 1..30 {
        assert_eq!(rig.count(Kind::Renewal), times);
        let error = Error::new(ErrorKind::Refused, "the program's clock is 1 h ahead of the server's");
        rig.answer(Kind::Renewal, "10.0.0.7:7609", Outcome::RefusedForGood(error));
        assert!(rig.fault().contains("jumped"));
        if times == 29 {
            rig.clock.step(-HOUR);
        }
        rig.pass(2 * SECOND);
    }
    renewed(&mut rig);
    takes_an_id_of_now(&mut rig);
}

/// The machine was suspended for longer than the lease.
#[test]
fn a_grant_confirms_a_jump() {
    let mut rig = leased();
    rig.pass(2 * SECOND);
    rig.clock.step(HOUR);
    rig.tick();
    rig.answer(Kind::Renewal, "10.0.0.7:7609", Outcome::Unknown);
    assert_eq!(rig.count(Kind::Grant), 2);
    let now = rig.clock.now().wall_us / 1000;
    rig.answer_lease(Kind::Grant, lease(8, now - HOUR, now + 60 * SECOND));
    takes_an_id_of_now(&mut rig);
}
