//! Random numbers that differ from process to process, and from thread to thread.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish());
}

/// Returns 64 random bits (SplitMix64).
pub(crate) fn bits() -> u64 {
    STATE.with(|state| {
        let seed = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(seed);
        let mut z = seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// Returns a number from 0, inclusive, to 1, exclusive.
pub(crate) fn fraction() -> f64 {
    (bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns a time from 0 to `most`.
pub(crate) fn up_to(most: Duration) -> Duration {
    most.mul_f64(fraction())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_below_one_and_differ() {
        let drawn: Vec<f64> = (0..100).map(|_| fraction()).collect();
        assert!(drawn.iter().all(|one| (0.0..1.0).contains(one)));
        assert!(drawn.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn threads_draw_different_numbers() {
        let other = std::thread::spawn(bits).join().unwrap();
        assert_ne!(bits(), other);
    }
}
