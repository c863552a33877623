//! Whom a lessee asks, and when: waits, the order of requests, and servers that are not in the list.

use super::lessee::{Outcome, Unusable, What};
use super::rig::*;
use super::terms::Lease;
use super::wire::LeaseTerms;
use crate::error::{Error, ErrorKind};

const HOUR_US: i64 = 3_600_000_000;

fn wait(us: i64) -> Outcome {
    Outcome::NotReady { retry_after_us: us, claiming: false }
}

fn elsewhere(server: &str) -> Outcome {
    Outcome::Elsewhere(server.to_owned())
}

fn granted_by(rig: &mut Rig, server: &str) -> Lease {
    rig.tick();
    let granted = lease(7, NOON_MS, NOON_MS + 60 * SECOND);
    rig.answer(Kind::Grant, server, Outcome::Lease(Box::new(granted.clone())));
    granted
}

#[test]
fn a_wait_that_a_server_asks_for_is_at_most_10_s() {
    let mut rig = Rig::new();
    rig.tick();
    rig.answer(Kind::Grant, "a:1", wait(HOUR_US));
    rig.pass(9_900);
    assert_eq!(rig.count(Kind::Grant), 1);
    rig.pass(200);
    assert_eq!(rig.count(Kind::Grant), 2);
}

#[test]
fn a_wait_that_a_server_asks_for_is_at_most_half_of_what_is_left_of_the_interval() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 15 * SECOND);
    rig.pass(5 * SECOND);
    rig.answer(Kind::Renewal, &held.server, wait(HOUR_US));
    rig.pass(4_900);
    assert_eq!(rig.count(Kind::Renewal), 1);
    rig.pass(200);
    assert_eq!(rig.count(Kind::Renewal), 2);
}

#[test]
fn delays_end_at_2_s_or_at_a_twelfth_of_the_interval_that_was_given() {
    for (ahead_ms, given_ms, most_ms) in [
        (60_000, 600_000, 2_000),
        (60_000, 6_000, 500),
        (60_000, 3_000, 250),
        (60_000, 1_000, 100),
        (6_000, 600_000, 500),
        (2_400, 600_000, 200),
        (2_000, 600_000, 167),
    ] {
        let mut rig = Rig::with_ahead(ahead_ms);
        let held = rig.hold(7, given_ms);
        rig.pass(given_ms / 3);
        let (mut last_ms, mut widest_ms, mut sent) = (0, 0, 0);
        for ms in 0..(given_ms / 2).min(60_000) {
            if rig.count(Kind::Renewal) > sent {
                widest_ms = if sent > 0 { widest_ms.max(ms - last_ms) } else { 0 };
                (last_ms, sent) = (ms, rig.count(Kind::Renewal));
                rig.no_answer(Kind::Renewal, &held.server, true);
            }
            rig.clock.advance(1);
            rig.tick();
        }
        let expected_ms = most_ms / 2; // the random half is 0
        assert!((widest_ms - expected_ms).abs() <= 1, "{ahead_ms} {given_ms}: {widest_ms}");
    }
}

/// The release of the first lease is pending when a server gives a shorter interval.
#[test]
fn a_shorter_interval_bounds_the_delays_of_a_request_that_is_pending() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    rig.answer(Kind::Renewal, &held.server, Outcome::Refused);
    let next = rig.hold(8, 60 * SECOND);
    for _ in 0..10 {
        rig.no_answer(Kind::Release, &held.server, true);
        rig.pass(SECOND);
    }
    rig.pass(10 * SECOND);
    rig.answer(Kind::Renewal, &next.server, Outcome::Revoked);
    rig.hold(9, 3 * SECOND);
    let sent = rig.count(Kind::Release);
    rig.no_answer(Kind::Release, &held.server, true);
    rig.pass(250);
    assert_eq!(rig.count(Kind::Release), sent + 1);
}

#[test]
fn a_renewal_is_sent_before_a_grant_and_a_grant_before_releases() {
    let mut rig = Rig::new();
    rig.tick();
    let ending = Lease { ending: true, ..lease(7, NOON_MS, NOON_MS + 60 * SECOND) };
    rig.answer_lease(Kind::Grant, ending);
    rig.pass(41 * SECOND);
    rig.hold(8, 15 * SECOND);
    rig.no_answer(Kind::Release, "10.0.0.7:7609", false);
    rig.sent.clear();
    rig.clock.advance(11 * SECOND); // less than a third is left, and the renewal is late
    rig.tick();
    assert!(matches!(
        rig.sent.iter().map(|(_, one)| &one.what).collect::<Vec<_>>()[..],
        [What::Renewal { .. }, What::Grant { .. }, What::Release { .. }]
    ));
}

#[test]
fn a_lease_id_is_sent_to_no_address_that_is_not_in_the_list() {
    let mut rig = Rig::new();
    rig.strangers.lock().unwrap().insert("stranger:1".to_owned());
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    rig.answer_with(Kind::Renewal, &held.server, elsewhere("stranger:1"), "it moved");
    assert_eq!(rig.refusal(), "it moved");
    rig.pass(SECOND);
    assert_eq!((rig.count(Kind::Renewal), &rig.newest(Kind::Renewal).server), (2, &held.server));
    rig.lessee.stop(Error::new(ErrorKind::Closed, ""), rig.clock.now());
    rig.tick();
    rig.answer(Kind::Release, &held.server, elsewhere("stranger:1"));
    rig.pass(SECOND);
    assert_eq!((rig.count(Kind::Release), &rig.newest(Kind::Release).server), (2, &held.server));
}

#[test]
fn the_address_that_the_grant_named_is_followed() {
    let mut rig = Rig::new();
    rig.strangers.lock().unwrap().insert("10.0.0.7:7609".to_owned());
    let granted = granted_by(&mut rig, "a:1");
    rig.pass(20 * SECOND);
    assert_eq!(rig.newest(Kind::Renewal).server, "a:1"); // the one that granted the lease
    rig.answer(Kind::Renewal, "a:1", elsewhere(&granted.server));
    assert_eq!(rig.newest(Kind::Renewal).server, granted.server);
}

#[test]
fn a_renewal_goes_to_the_server_that_the_terms_name_if_the_list_has_it() {
    let mut rig = Rig::new();
    let granted = granted_by(&mut rig, "a:1");
    rig.pass(20 * SECOND);
    assert_eq!(rig.newest(Kind::Renewal).server, granted.server);
    rig.strangers.lock().unwrap().insert(granted.server);
    let later = lease(7, NOON_MS, NOON_MS + 80 * SECOND);
    rig.answer(Kind::Renewal, "b:1", Outcome::Lease(Box::new(later)));
    rig.pass(20 * SECOND);
    assert_eq!(rig.newest(Kind::Renewal).server, "b:1");
}

#[test]
fn unusable_terms_are_given_back_and_another_server_is_asked_with_a_fresh_token() {
    for (from_tick, expected) in [(100, 99), (-5, -1), (i64::MIN, -1)] {
        let mut rig = Rig::new();
        rig.strangers.lock().unwrap().insert("stranger:1".to_owned());
        rig.tick();
        let token = rig.token();
        let terms = Unusable { id: "lease-9".to_owned(), server: "stranger:1".to_owned(), from_tick, end_us: 0 };
        rig.answer_with(Kind::Grant, "a:1", Outcome::Unusable(terms), "cannot be used");
        let release = rig.newest(Kind::Release);
        assert_eq!(release.server, "a:1");
        let (lease, turn) = ("lease-9".to_owned(), String::new());
        assert_eq!(release.what, What::Release { lease, turn, used_tick: expected });
        assert_eq!((rig.count(Kind::Grant), rig.grant().0), (2, vec!["a:1".to_owned()]));
        assert_ne!(rig.token(), token);
        assert_eq!(rig.refusal(), "cannot be used");
    }
}

/// Returns how long an unused lease, whose release is not answered, is released.
fn released_ms(mut rig: Rig) -> i64 {
    let (mut last_ms, mut sent) = (0, 0);
    for ms in 0..150_000 {
        if rig.count(Kind::Release) > sent {
            (last_ms, sent) = (ms, rig.count(Kind::Release));
            rig.no_answer(Kind::Release, "a:1", false);
        }
        rig.clock.advance(1);
        rig.tick();
    }
    last_ms
}

#[test]
fn an_unused_lease_is_released_until_its_end_or_for_ahead() {
    let unusable = |end_us| {
        let (id, server) = ("lease-9".to_owned(), "a:1".to_owned());
        Outcome::Unusable(Unusable { id, server, from_tick: 1, end_us })
    };
    let noon_us = NOON_MS * 1000;
    for (end_us, end_ms) in [
        (noon_us + 15_000_000, 15 * SECOND),
        (noon_us + 600_000_000, 60 * SECOND), // more than was asked for
        (noon_us, 60 * SECOND),               // the end is unknown
        (i64::MIN, 60 * SECOND),
        (i64::MAX, 60 * SECOND),
    ] {
        let mut rig = Rig::new();
        rig.tick();
        rig.answer(Kind::Grant, "a:1", unusable(end_us));
        let last_ms = released_ms(rig);
        assert!(last_ms < end_ms && last_ms > end_ms - 3 * SECOND, "{end_us}: {last_ms}");
    }
}

#[test]
fn an_unused_lease_of_another_layout_is_released_until_its_end() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    rig.answer(Kind::Renewal, &held.server, Outcome::Revoked);
    let mut other = lease(8, NOON_MS, NOON_MS + 35 * SECOND); // 15 s are left
    other.shape.sequence_bits -= 1;
    rig.answer_lease(Kind::Grant, other);
    let last_ms = released_ms(rig);
    assert!(last_ms < 15 * SECOND && last_ms > 12 * SECOND, "{last_ms}");
}

#[test]
fn terms_that_are_wrong_have_an_end_too() {
    let good = terms(7, NOON_MS, NOON_MS + 15 * SECOND);
    assert_eq!(good.end_us(), (NOON_MS + 15 * SECOND) * 1000);
    let wrong = LeaseTerms { tick_ms: i32::MAX, until_tick: i64::MAX, epoch_ms: i64::MAX, ..good };
    assert_eq!(wrong.end_us(), i64::MAX);
}

#[test]
fn a_lease_of_another_layout_is_given_back_after_a_loss_too() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    rig.answer(Kind::Renewal, &held.server, Outcome::Revoked);
    let mut other = lease(8, NOON_MS, NOON_MS + 60 * SECOND);
    other.shape.epoch_us = 0;
    let unused = other.from_tick - 1;
    rig.answer_lease(Kind::Grant, other);
    assert!(rig.refusal().contains("its layout is not that of the first lease"), "{}", rig.refusal());
    assert_eq!(rig.released(), (String::new(), unused));
    rig.hold(9, 60 * SECOND);
    rig.take(3);
}

#[test]
fn unusable_terms_for_a_renewal_count_as_no_answer() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    let (turn, _) = rig.turns();
    let terms = Unusable { id: "lease-7".to_owned(), server: held.server.clone(), from_tick: 1, end_us: 0 };
    rig.answer(Kind::Renewal, &held.server, Outcome::Unusable(terms));
    rig.pass(SECOND);
    assert_eq!((rig.count(Kind::Renewal), rig.turns().0), (2, turn));
    assert_eq!((rig.count(Kind::Grant), rig.count(Kind::Release)), (1, 0));
}
