use super::lessee::{LeaseOutcome, LossKind, Outcome};
use super::rig::*;
use super::terms::Lease;
use crate::error::{Error, ErrorKind};

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the generator was closed")
}

fn ending(machine: i32, from_ms: i64, until_ms: i64) -> Lease {
    Lease { ending: true, ..lease(machine, from_ms, until_ms) }
}

#[test]
fn repeats_a_grant_without_an_answer_with_its_token_at_the_same_server() {
    let mut rig = Rig::new();
    rig.tick();
    let (_, token) = rig.grant();
    assert_eq!((rig.newest(Kind::Grant).server.as_str(), token.len()), ("", 32));
    rig.no_answer(Kind::Grant, "a:1", true);
    rig.pass(SECOND);
    assert_eq!(rig.count(Kind::Grant), 2);
    assert_eq!((rig.newest(Kind::Grant).server.as_str(), rig.token()), ("a:1", token));
    rig.hold(7, 60 * SECOND);
    assert_eq!(machine_of(rig.take(1)[0]), 7);
}

#[test]
fn asks_another_server_with_a_fresh_token_when_a_grant_stays_without_an_answer() {
    let mut rig = Rig::new();
    rig.tick();
    let token = rig.token();
    // The second one does not reach the server.
    for sent in [true, false] {
        rig.no_answer(Kind::Grant, "a:1", sent);
        rig.pass(2 * SECOND);
    }
    assert_eq!(rig.newest(Kind::Grant).server, "");
    assert_eq!(rig.grant().0, ["a:1"]);
    assert_ne!(rig.token(), token);
}

#[test]
fn asks_another_server_with_the_same_token_when_a_grant_was_not_sent_or_cannot_be_granted_there() {
    let mut rig = Rig::new();
    rig.tick();
    let token = rig.token();
    rig.no_answer(Kind::Grant, "a:1", false);
    rig.answer_with(Kind::Grant, "b:1", Outcome::Refused, "no leases");
    assert_eq!(rig.grant(), (vec!["a:1".to_owned(), "b:1".to_owned()], token));
    rig.no_answer(Kind::Grant, "", false); // all were asked
    assert_eq!(rig.count(Kind::Grant), 3);
    rig.pass(SECOND);
    assert_eq!(rig.grant().0, Vec::<String>::new());
    assert_eq!(*rig.refusals.lock().unwrap(), ["a:1 timeout", "no leases"]);
}

#[test]
fn waits_as_long_as_a_server_that_is_not_ready_says_and_repeats_the_token_there() {
    let mut rig = Rig::new();
    rig.tick();
    let token = rig.token();
    rig.answer(Kind::Grant, "a:1", Outcome::NotReady { retry_after_us: 5_000_000, claiming: false });
    rig.pass(4_900);
    assert_eq!(rig.count(Kind::Grant), 1);
    rig.pass(200);
    assert_eq!((rig.newest(Kind::Grant).server.as_str(), rig.token()), ("a:1", token));
}

#[test]
fn draws_a_fresh_token_when_the_lease_of_the_first_has_ended_or_cannot_be_used() {
    for outcome in [Outcome::Outdated, Outcome::Revoked, Outcome::Unknown] {
        let mut rig = Rig::new();
        rig.tick();
        let token = rig.token();
        rig.answer(Kind::Grant, "a:1", outcome);
        assert_ne!(rig.token(), token);
    }
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig.pass(41 * SECOND);
    let token = rig.token();
    let mut other = lease(8, NOON_MS, NOON_MS + 900 * SECOND);
    other.shape.tick_us *= 10;
    rig.answer_lease(Kind::Grant, other);
    assert!(rig.refusal().contains("10.0.0.8:7609 cannot be used: its layout"), "{}", rig.refusal());
    assert_ne!(rig.token(), token);
    rig.take(3); // of the first lease
}

#[test]
fn renews_with_a_fresh_turn_and_the_turn_that_was_answered_last() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    let (first, acknowledged) = rig.turns();
    assert_eq!((rig.newest(Kind::Renewal).server, first.len(), acknowledged.as_str()), (held.server, 32, ""));
    rig.answer_lease(Kind::Renewal, lease(7, NOON_MS, NOON_MS + 80 * SECOND));
    rig.pass(20 * SECOND);
    let (second, acknowledged) = rig.turns();
    assert_ne!(second, first);
    assert_eq!(acknowledged, first);
    rig.clock.advance(39 * SECOND);
    rig.take(3);
}

#[test]
fn repeats_a_renewal_with_its_turn_when_the_answer_is_lost() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    let first = rig.newest(Kind::Renewal);
    for _ in 0..3 {
        rig.no_answer(Kind::Renewal, &held.server, true);
        rig.pass(3 * SECOND);
        let again = rig.newest(Kind::Renewal);
        assert_eq!((again.server, again.what), (first.server.clone(), first.what.clone()));
    }
    assert_eq!(rig.count(Kind::Renewal), 4);
    rig.answer_lease(Kind::Renewal, lease(7, NOON_MS, NOON_MS + 90 * SECOND));
    rig.clock.advance(55 * SECOND);
    rig.take(3);
}

#[test]
fn has_one_renewal_under_way() {
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig.pass(50 * SECOND);
    assert_eq!(rig.count(Kind::Renewal), 1);
}

#[test]
fn stops_at_once_when_the_lease_is_revoked_and_takes_another_one_with_a_fresh_token() {
    for outcome in [Outcome::Revoked, Outcome::Outdated] {
        let mut rig = Rig::new();
        let held = rig.hold(7, 60 * SECOND);
        let token = rig.token();
        rig.take(3);
        rig.pass(20 * SECOND);
        rig.answer_with(Kind::Renewal, &held.server, outcome, "another process extended it");
        let text = "the lease of machine id 7 was revoked at 2026-11-26 12:00:20 UTC: another process extended it";
        assert_eq!(rig.fault(), text);
        let loss = rig.losses.lock().unwrap()[0].clone();
        assert_eq!((loss.kind, loss.machine_id), (LossKind::Revoked, 7));
        assert_eq!(loss.reason, "another process extended it");
        let (avoid, next) = rig.grant();
        assert_ne!(next, token);
        assert_eq!(avoid, [held.server]);
        rig.hold(8, 60 * SECOND);
        assert_eq!(machine_of(rig.take(1)[0]), 8);
        assert_eq!(rig.count(Kind::Release), 0);
    }
}

#[test]
fn uses_a_lease_that_its_server_does_not_know_to_its_end_and_requests_another_at_once() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    assert_eq!(rig.count(Kind::Grant), 1);
    rig.answer(Kind::Renewal, &held.server, Outcome::Unknown);
    assert_eq!(rig.count(Kind::Grant), 2);
    rig.clock.advance(39 * SECOND);
    assert_eq!(machine_of(rig.take(1)[0]), 7);
    rig.clock.advance(SECOND);
    let text = "the lease of machine id 7 ended at 2026-11-26 12:01:00 UTC, and no server has extended it";
    assert_eq!(rig.fault(), text);
    rig.tick();
    assert_eq!(rig.count(Kind::Renewal), 1);
    rig.hold(8, 60 * SECOND);
    rig.take(3);
    assert_eq!(rig.count(Kind::Release), 0); // its server does not have the first lease
}

#[test]
fn requests_another_lease_at_once_when_the_server_extends_this_one_no_further_and_then_releases_it() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(41 * SECOND); // a grant is in progress, too
    rig.no_answer(Kind::Grant, "", false);
    assert_eq!(rig.count(Kind::Grant), 2);
    rig.answer_with(Kind::Renewal, &held.server, Outcome::Refused, "no leases");
    assert_eq!(rig.count(Kind::Grant), 3); // at once
    rig.pass(10 * SECOND);
    assert_eq!(rig.count(Kind::Renewal), 1);
    let last = rig.take(3)[2];
    rig.hold(8, 60 * SECOND);
    assert_eq!(rig.released().1, tick_of(last));
}

#[test]
fn keeps_the_lease_and_asks_for_no_other_when_a_late_renewal_succeeds() {
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig.pass(41 * SECOND);
    rig.no_answer(Kind::Grant, "", false);
    rig.answer_lease(Kind::Renewal, lease(7, NOON_MS, NOON_MS + 101 * SECOND));
    rig.pass(10 * SECOND);
    assert_eq!(rig.count(Kind::Grant), 2);
    assert_eq!(machine_of(rig.take(1)[0]), 7);
}

#[test]
fn renews_an_ending_lease_up_to_its_bound_and_replaces_it_when_a_third_is_left() {
    let mut rig = Rig::new();
    rig.tick();
    rig.answer_lease(Kind::Grant, ending(7, NOON_MS, NOON_MS + 60 * SECOND));
    let mut answered = 0;
    for _ in 0..159 {
        rig.pass(SECOND);
        if rig.count(Kind::Renewal) > answered {
            answered += 1;
            let until_ms = (rig.clock.now().wall_us / 1000 + 60 * SECOND).min(NOON_MS + 180 * SECOND);
            rig.answer_lease(Kind::Renewal, ending(7, NOON_MS, until_ms));
            assert_eq!(machine_of(rig.take(1)[0]), 7);
        }
    }
    assert!(answered >= 6, "{answered}");
    assert_eq!(rig.count(Kind::Grant), 1);
    rig.pass(3 * SECOND);
    assert_eq!(rig.count(Kind::Grant), 2);
    rig.pass(17 * SECOND);
    assert_eq!(machine_of(rig.take(1)[0]), 7);
    assert!(rig.losses.lock().unwrap().is_empty());
}

/// The clock of one server is wrong, for instance.
#[test]
fn reports_a_refusal_as_final_only_if_all_servers_refuse() {
    let mut rig = Rig::new();
    let finals = |rig: &Rig| rig.refusals.lock().unwrap().iter().filter(|one| one.contains("for good")).count();
    let refused = || Outcome::RefusedForGood(Error::new(ErrorKind::Refused, "for good"));
    for (other, expected) in [(Outcome::Refused, 1), (refused(), 2), (Outcome::NoAnswer { sent: false }, 2)] {
        rig.pass(3 * SECOND);
        rig.answer(Kind::Grant, "a:1", refused());
        rig.tick();
        rig.answer(Kind::Grant, "b:1", other);
        rig.pass(3 * SECOND);
        rig.no_answer(Kind::Grant, "", false); // all were asked
        assert_eq!(finals(&rig), expected);
    }
    rig.pass(3 * SECOND);
    rig.answer(Kind::Grant, "a:1", refused());
    rig.hold(7, 60 * SECOND);
    assert_eq!(finals(&rig), 2);
}

/// A slow registry, or a probation: another server would claim a second machine id.
#[test]
fn repeats_the_token_at_a_server_that_is_claiming_a_machine_id() {
    let mut rig = Rig::new();
    rig.tick();
    let asked = rig.newest(Kind::Grant).what.clone();
    for i in 2..12 {
        rig.answer(Kind::Grant, "a:1", Outcome::NotReady { retry_after_us: 700_000, claiming: true });
        rig.pass(3 * SECOND);
        let again = rig.newest(Kind::Grant);
        assert_eq!((again.server.as_str(), &again.what), ("a:1", &asked));
        assert_eq!(rig.count(Kind::Grant), i);
    }
    for server in ["a:1", ""] {
        rig.no_answer(Kind::Grant, "a:1", true);
        rig.pass(3 * SECOND);
        assert_eq!(rig.newest(Kind::Grant).server, server);
    }
}

#[test]
fn replaces_an_ending_lease_when_a_third_is_left_in_a_later_tick() {
    let mut rig = Rig::new();
    rig.tick();
    rig.answer_lease(Kind::Grant, ending(7, NOON_MS, NOON_MS + 60 * SECOND));
    rig.pass(39 * SECOND);
    assert_eq!(rig.count(Kind::Grant), 1);
    let (turn, _) = rig.turns();
    rig.pass(2 * SECOND);
    assert_eq!(rig.count(Kind::Grant), 2);
    assert_eq!(rig.grant().0, ["10.0.0.7:7609"]);
    let last = rig.take(1)[0];
    let now = rig.clock.now().wall_us / 1000;
    rig.answer_lease(Kind::Grant, lease(3, now - SECOND, now + 60 * SECOND));
    let next = rig.take(1)[0]; // a smaller machine id in the same tick would be a smaller id
    assert_eq!((machine_of(next), tick_of(next)), (3, tick_of(last) + 1));
    assert_eq!(rig.released(), (turn, tick_of(last)));
    assert!(rig.losses.lock().unwrap().is_empty());
}

#[test]
fn replaces_a_lease_that_no_server_extends() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    let (turn, _) = rig.turns();
    rig.no_answer(Kind::Renewal, &held.server, false);
    rig.pass(21 * SECOND);
    rig.hold(8, 60 * SECOND);
    assert_eq!(rig.released().0, turn); // the server may have accepted it
    rig.take(3);
}

#[test]
fn asks_the_server_that_has_the_lease_and_follows_at_most_2_servers() {
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    let (turn, _) = rig.turns();
    for hop in 1..3 {
        rig.answer(Kind::Renewal, "b:1", Outcome::Elsewhere(format!("a:{hop}")));
        assert_eq!((rig.newest(Kind::Renewal).server, rig.turns().0), (format!("a:{hop}"), turn.clone()));
    }
    rig.answer(Kind::Renewal, "a:2", Outcome::Elsewhere("a:3".to_owned()));
    assert_eq!(rig.count(Kind::Renewal), 3);
    rig.pass(SECOND);
    assert_eq!(rig.newest(Kind::Renewal).server, "a:2");
}

#[test]
fn refuses_a_renewal_that_has_the_terms_of_another_lease() {
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    let (turn, _) = rig.turns();
    let later = || lease(7, NOON_MS, NOON_MS + 900 * SECOND);
    let (mut longer_ticks, mut later_epoch) = (later(), later());
    longer_ticks.shape.tick_us *= 2;
    later_epoch.shape.epoch_us += 1000;
    let others = [
        lease(8, NOON_MS, NOON_MS + 900 * SECOND),
        lease(7, NOON_MS, NOON_MS + 50 * SECOND),
        longer_ticks,
        later_epoch,
    ];
    for (at, other) in others.into_iter().enumerate() {
        rig.answer_lease(Kind::Renewal, other);
        assert!(rig.refusals.lock().unwrap()[at].contains("answered a renewal with another lease"));
        rig.pass(SECOND);
        assert_eq!((rig.turns().0, rig.count(Kind::Renewal)), (turn.clone(), at + 2));
    }
}

#[test]
fn stops_at_the_end_after_a_pause_and_reports_the_loss_once() {
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig.take(3);
    rig.clock.advance(600 * SECOND); // SIGSTOP, or a suspended machine
    assert!(rig.fault().contains("ended at"));
    rig.pass(5 * SECOND);
    let kinds: Vec<_> = rig.losses.lock().unwrap().iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [LossKind::Expired]);
    rig.hold(9, 60 * SECOND);
    rig.take(3);
}

#[test]
fn continues_the_same_lease_when_it_is_extended_after_the_pause() {
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig.clock.advance(90 * SECOND);
    rig.tick();
    rig.answer_lease(Kind::Renewal, lease(7, NOON_MS, NOON_MS + 120 * SECOND));
    assert_eq!(machine_of(rig.take(1)[0]), 7);
}

#[test]
fn ignores_the_answer_to_a_request_that_is_no_longer_needed() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    rig.answer(Kind::Renewal, &held.server, Outcome::Revoked);
    rig.answer_lease(Kind::Renewal, lease(7, NOON_MS, NOON_MS + 900 * SECOND));
    assert!(rig.fault().contains("was revoked"));
}

#[test]
fn closes_the_ids_before_it_reads_the_last_tick_and_stays_closed() {
    let mut rig = Rig::new();
    rig.hold(7, 60 * SECOND);
    rig.pass(20 * SECOND);
    let (turn, _) = rig.turns();
    let last = rig.take(1)[0];
    rig.lessee.stop(closed(), rig.clock.now());
    assert_eq!(rig.fault(), "the generator was closed");
    rig.tick();
    assert_eq!(rig.released(), (turn, tick_of(last))); // the server may have accepted the turn
    rig.answer_lease(Kind::Renewal, lease(7, NOON_MS, NOON_MS + 900 * SECOND));
    assert_eq!(rig.fault(), "the generator was closed");
    assert!(!rig.lessee.is_stopped());
    rig.answer(Kind::Release, "10.0.0.7:7609", Outcome::Released);
    assert!(rig.lessee.is_stopped());
}

#[test]
fn a_grant_that_is_answered_after_the_end_issues_nothing_and_is_given_back() {
    let mut rig = Rig::new();
    rig.tick();
    rig.ids.end(closed()); // by the program, before the lessee hears of it
    let granted = lease(7, NOON_MS, NOON_MS + 60 * SECOND);
    let kind = Outcome::Lease(Box::new(granted.clone()));
    let outcome = LeaseOutcome { server: "a:1".to_owned(), kind, message: String::new() };
    rig.lessee.on_reply(rig.number(Kind::Grant), outcome, rig.clock.now());
    assert_eq!(rig.fault(), "the generator was closed");
    rig.lessee.stop(closed(), rig.clock.now());
    rig.tick();
    assert_eq!(rig.released(), (String::new(), granted.from_tick - 1));
    rig.answer(Kind::Release, "10.0.0.7:7609", Outcome::Released);
    assert!(rig.lessee.is_stopped());
}

#[test]
fn releases_an_unused_lease_below_its_first_tick() {
    let mut rig = Rig::new();
    let held = rig.hold(7, 60 * SECOND);
    rig.lessee.stop(closed(), rig.clock.now());
    rig.tick();
    assert_eq!(rig.released().1, held.from_tick - 1);
}

#[test]
fn repeats_a_release_until_it_is_answered_or_the_lease_has_ended() {
    let mut rig = Rig::new();
    rig.tick();
    rig.answer_lease(Kind::Grant, ending(7, NOON_MS, NOON_MS + 30 * SECOND));
    rig.pass(21 * SECOND);
    rig.hold(8, 600 * SECOND);
    for (passed, count) in [(5, 2), (20, 3), (5, 3)] {
        rig.no_answer(Kind::Release, "10.0.0.7:7609", true);
        rig.pass(passed * SECOND);
        assert_eq!(rig.count(Kind::Release), count);
    }
}

#[test]
fn pauses_between_a_lease_and_the_request_for_another() {
    let mut rig = Rig::new();
    rig.hold(7, 1);
    rig.pass(1_900);
    assert_eq!(rig.count(Kind::Grant), 1);
    rig.pass(200);
    assert_eq!(rig.count(Kind::Grant), 2);
}
