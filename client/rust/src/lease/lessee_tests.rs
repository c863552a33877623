//! Plays the tables of lessees that the generators of all languages share, and tests what only this one has.

use super::lessee::{Outcome, Unusable, What};
use super::player::*;
use super::wire::LeaseTerms;
use crate::wire::tests::table;

fn play(name: &str, least: usize) {
    let Some(table) = table(name) else { return };
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() >= least);
    for one in cases {
        eprintln!("{}", one["case"]); // shown after a failure, as the steps are
        let steps: Vec<_> = one["steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
        Player::with(one["servers"].as_i64().unwrap_or(2), one["ahead"].as_i64().unwrap_or(60_000)).play(&steps);
    }
}

#[test]
fn follows_the_shared_rules() {
    play("lessees.json", 60);
}

#[test]
fn follows_the_shared_rules_of_clock_jumps() {
    play("jumps.json", 10);
}

#[test]
fn has_one_renewal_under_way() {
    let mut player = Player::new();
    player.play(&["lease", "pass 38000"]);
    assert_eq!(player.waiting.len(), 1);
}

#[test]
fn ignores_the_answer_to_a_request_that_is_no_longer_needed() {
    let mut player = Player::new();
    player.play(&["lease", "pass 20000"]);
    let renewal = player.waiting[0].clone();
    player.play(&["answer revoked"]);
    player.waiting.insert(0, renewal);
    player.give("a:1", Outcome::Released, "");
    assert!(player.fault().contains("was revoked"));
}

#[test]
fn a_grant_that_is_answered_after_the_end_issues_nothing_and_is_given_back() {
    let mut player = Player::new();
    player.turn();
    player.ids.end(closed()); // by the program, before the lessee hears of it
    player.play(&[
        "answer terms",
        "next closed",
        "stop",
        "reply grant lost",
        "reply release released",
        "saw grant release:7:-",
        "stopped yes",
    ]);
}

#[test]
fn reports_losses_and_refusals_with_their_reasons() {
    let mut player = Player::new();
    player.play(&[
        "pass 0",
        "answer terms:spoilt=overlap",
        "reply grant terms",
        "pass 2000",
        "reply release released",
    ]);
    player.play(&["reply renewal revoked", "pass 20000"]);
    assert_eq!(player.losses.lock().unwrap()[0].reason, "revoked");
    assert_eq!(player.refusals.lock().unwrap()[0], "terms:spoilt=overlap");
}

#[test]
fn gives_back_terms_with_any_invalid_field() {
    let noon_us = NOON_MS * 1000;
    for (from_tick, expected) in [(100, 99), (-5, -1), (i64::MIN, -1)] {
        for (end_us, last_ms) in [(noon_us + 15_000_000, 15_000), (i64::MIN, 60_000), (i64::MAX, 60_000)] {
            let mut player = Player::new();
            player.turn();
            let terms = Unusable { id: "lease-9".to_owned(), server: "a:1".to_owned(), from_tick, end_us };
            player.give("a:1", Outcome::Unusable(terms), "");
            player.lessee.stop(closed(), player.clock.now());
            let (lease, turn) = ("lease-9".to_owned(), String::new());
            let release = What::Release { lease, turn, used_tick: expected };
            assert_eq!(player.waiting.last().unwrap().1.what, release);
            player.clock.advance(last_ms - 1);
            player.lessee.tick(player.clock.now());
            assert!(!player.lessee.is_stopped());
            player.clock.advance(1);
            player.lessee.tick(player.clock.now());
            assert!(player.lessee.is_stopped());
        }
    }
}

#[test]
fn the_end_of_terms_that_overflow_is_the_largest_time() {
    let good = terms(7, NOON_MS, NOON_MS + 15 * SECOND);
    assert_eq!(good.end_us(), (NOON_MS + 15 * SECOND) * 1000);
    let wrong = LeaseTerms { tick_ms: i32::MAX, until_tick: i64::MAX, epoch_ms: i64::MAX, ..good };
    assert_eq!(wrong.end_us(), i64::MAX);
}

/// The clock of one server is wrong, for instance.
#[test]
fn reports_a_refusal_as_final_only_if_all_servers_refuse() {
    for (other, expected) in [("none", 1), ("refused", 1), ("unreachable", 0), ("terms", 0)] {
        let mut player = Player::new();
        player.play(&["pass 0", "answer refused", "pass 0", &format!("answer {other}"), "pass 3000"]);
        assert_eq!(player.finals.lock().unwrap().len(), expected, "{other}");
    }
}
