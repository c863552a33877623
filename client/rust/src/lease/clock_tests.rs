//! Jumps of the wall clock, in the table tests/contract/jumps.json that the generators of all languages share.

use super::lessee::Outcome;
use super::rig::*;
use crate::error::{Error, ErrorKind};
use crate::wire::tests::table;

const HOUR: i64 = 3600 * SECOND;
const SERVER: &str = "10.0.0.7:7609";

struct World {
    rig: Rig,
    /// Of the requests that were sent, those that a step has looked at.
    seen: usize,
}

impl World {
    fn newest(&self) -> Kind {
        kind_of(&self.rig.sent.last().unwrap().1)
    }

    fn answer(&mut self, word: &str) {
        let (kind, now) = (self.newest(), self.rig.clock.now().wall_us / 1000);
        let outcome = match word {
            "terms" => {
                let held = self.rig.ids.held();
                let (machine, from) = match (held, kind) {
                    (Some(held), Kind::Renewal) => (held.machine as i32, held.from_tick + EPOCH_MS),
                    (held, _) => (7 + i32::from(held.is_some()), now - HOUR),
                };
                let mut granted = lease(machine, from, now + 60 * SECOND);
                granted.renew_in_us = 20_000_000;
                Outcome::Lease(Box::new(granted))
            }
            "unknown" => Outcome::Unknown,
            "refused" => Outcome::RefusedForGood(Error::new(
                ErrorKind::Refused,
                "the program's clock is ahead of the server's",
            )),
            _ => Outcome::NoAnswer { sent: true },
        };
        self.rig.answer(kind, SERVER, outcome);
    }

    fn next(&mut self, expected: &str) {
        if expected == "id" {
            let now = self.rig.clock.now().wall_us / 1000 - EPOCH_MS;
            assert_eq!(tick_of(self.rig.take(1)[0]), now);
        } else {
            assert_eq!(
                self.rig.fault(),
                "the wall clock has jumped forward by 3600 s, and no server has confirmed it"
            );
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let woken = runtime.block_on(async {
            tokio::select! { biased; () = self.rig.ids.jumps.notified() => true, () = std::future::ready(()) => false }
        });
        if woken {
            self.rig.tick();
        }
    }

    fn step(&mut self, verb: &str, words: &[&str]) {
        let ms = || words[0].parse::<i64>().unwrap();
        match verb {
            "lease" => {
                self.rig.tick();
                self.answer("terms");
                self.seen = self.rig.sent.len();
            }
            "pass" => self.rig.pass(ms()),
            "step" => {
                self.rig.clock.step(ms());
                self.rig.clock.advance(1);
            }
            "next" => self.next(words[0]),
            "look" => assert!(self.rig.ids.held().is_some()),
            "answer" => self.answer(words[0]),
            "sent" => {
                let kinds =
                    self.rig.sent[self.seen..].iter().map(|(_, one)| format!("{:?}", kind_of(one)).to_lowercase());
                assert_eq!(kinds.collect::<Vec<_>>(), words);
                self.seen = self.rig.sent.len();
            }
            _ => panic!("unknown step"),
        }
    }
}

#[test]
fn jumps() {
    let Some(table) = table("jumps.json") else { return };
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() > 10);
    for one in cases {
        eprintln!("{}", one["case"]); // shown after a failure, as the steps are
        let mut world = World { rig: Rig::new(), seen: 0 };
        for step in one["steps"].as_array().unwrap() {
            eprintln!("  {step}");
            let words: Vec<_> = step.as_str().unwrap().split(' ').collect();
            world.step(words[0], &words[1..]);
        }
    }
}
