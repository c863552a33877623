//! Which servers of a large cluster a client uses, and which of several it asks.

use crate::random;
use crate::server::Member;

const OUTSIDE_RACK: usize = 4; // of 16 servers
const CLEARLY_BUSIER: f64 = 1.5;

/// A server that the client may use.
pub(crate) struct Candidate {
    pub(crate) slot: usize,
    pub(crate) score: f64,
    pub(crate) rack: i32,
}

/// Returns the score of weighted rendezvous hashing; the client uses the servers with the least.
pub(crate) fn score(client: &str, address: &str, share: f64) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64; // FNV-1a
    for byte in client.bytes().chain(address.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    let drawn = ((hash >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    -drawn.ln() / share
}

/// Returns the slots of the servers that the client uses, most of them of its rack.
pub(crate) fn subset(mut candidates: Vec<Candidate>, most: usize, rack: Option<i32>) -> Vec<usize> {
    candidates.sort_by(|one, other| one.score.total_cmp(&other.score));
    if most > 0 && candidates.len() > most {
        if let Some(rack) = rack {
            let (mut inside, mut outside): (Vec<_>, Vec<_>) =
                candidates.into_iter().partition(|one| one.rack == rack);
            let kept_outside = (most * OUTSIDE_RACK / 16).min(outside.len());
            inside.truncate(most - kept_outside);
            outside.truncate(most - inside.len());
            inside.append(&mut outside);
            candidates = inside;
        }
        candidates.truncate(most);
    }
    candidates.into_iter().map(|one| one.slot).collect()
}

/// Draws two servers by weight, and returns the second if it is clearly less busy, otherwise the first.
pub(crate) fn less_busy<'a>(servers: &[&'a Member]) -> Option<&'a Member> {
    let first = draw(servers, None)?;
    let Some(second) = draw(servers, Some(first)) else { return Some(first) };
    let mean = (first.share() + second.share()) / 2.0;
    let cost = |one: &Member| 1.0 + f64::from(one.in_flight()) * mean / one.share();
    Some(if cost(second) * CLEARLY_BUSIER <= cost(first) { second } else { first })
}

/// Draws a server by weight, without `except`.
fn draw<'a>(servers: &[&'a Member], except: Option<&Member>) -> Option<&'a Member> {
    let eligible =
        || servers.iter().copied().filter(move |one| !except.is_some_and(|other| other.server.id == one.server.id));
    let mut at = random::fraction() * eligible().map(Member::share).sum::<f64>();
    let mut drawn = None;
    for one in eligible() {
        drawn = Some(one);
        at -= one.share();
        if at < 0.0 {
            break;
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(racks: &[i32]) -> Vec<Candidate> {
        racks.iter().enumerate().map(|(slot, rack)| Candidate { slot, score: slot as f64, rack: *rack }).collect()
    }

    #[test]
    fn the_least_scores_are_used() {
        assert_eq!(subset(candidates(&[0, 0, 0, 0]), 2, None), [0, 1]);
        assert_eq!(subset(candidates(&[0, 0]), 2, None), [0, 1]);
        assert_eq!(subset(candidates(&[0, 0, 0]), 0, None).len(), 3);
    }

    #[test]
    fn a_quarter_is_outside_the_rack_and_either_side_fills_the_other() {
        assert_eq!(subset(candidates(&[1, 1, 2, 2, 2, 2, 2]), 4, Some(2)), [2, 3, 4, 0]);
        assert_eq!(subset(candidates(&[1, 1, 1, 1, 2]), 4, Some(2)), [4, 0, 1, 2]);
        assert_eq!(subset(candidates(&[2, 2, 2, 2, 2]), 4, Some(2)), [0, 1, 2, 3]);
        assert_eq!(subset(candidates(&[1, 1, 1, 1, 1]), 4, Some(2)), [0, 1, 2, 3]);
    }

    #[test]
    fn a_server_of_twice_the_weight_is_used_by_twice_as_many_clients() {
        let mut heavy = 0;
        for client in 0..3000 {
            let name = format!("client-{client}");
            heavy += usize::from(score(&name, "a:1", 200.0) < score(&name, "b:1", 100.0));
        }
        assert!((1900..2100).contains(&heavy), "{heavy} of 3000");
    }
}
