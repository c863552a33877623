//! Rates of LocalGenerator and ferroid: see ../../../generator_rates.py.

use std::collections::HashSet;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ferroid::generator::AtomicSnowflakeGenerator;
use ferroid::id::{Id, SnowflakeTwitterId};
use ferroid::time::{MonotonicClock, TWITTER_EPOCH};
use firn_client::{blocking, LeaseOptions};

const CHECKED: usize = 4_000; // ids of each thread that are compared with all others
const BUNCH: u64 = 50; // ids between two checks of the end

type Take<'a> = &'a (dyn Fn() -> u64 + Sync);

fn cpu_ns() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Safety: writes to `now` only.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn different(threads: usize, take: Take) -> usize {
    let ids = thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| (0..CHECKED).map(|_| take()).collect::<Vec<_>>())).collect();
        running.into_iter().flat_map(|one| one.join().unwrap()).collect::<HashSet<_>>()
    });
    ids.len()
}

/// Returns ids a second and nanoseconds of processor time an id.
fn round(threads: usize, length: Duration, take: Take) -> (f64, f64) {
    let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let (before, began) = (cpu_ns(), Instant::now());
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(length);
            over.store(true, Ordering::Relaxed);
        });
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = 0;
                while !over.load(Ordering::Relaxed) {
                    for _ in 0..BUNCH {
                        black_box(take());
                    }
                    mine += BUNCH;
                }
                count.fetch_add(mine, Ordering::Relaxed);
            });
        }
    });
    let ids = count.into_inner() as f64;
    (ids / began.elapsed().as_secs_f64(), (cpu_ns() - before) / ids)
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (threads, rounds) = (words[2].parse().unwrap(), words[3].parse().unwrap());
    let length = Duration::from_millis(words[4].parse().unwrap());
    let client = blocking::Client::new(&words[1]).unwrap();
    let local = client.local_generator(LeaseOptions::new("rates")).unwrap();
    let shared: AtomicSnowflakeGenerator<SnowflakeTwitterId, _> =
        AtomicSnowflakeGenerator::new(1, MonotonicClock::<1>::with_epoch(TWITTER_EPOCH));
    let firn = || local.next().unwrap() as u64;
    let ferroid = || shared.next_id(|_| thread::yield_now()).to_raw();
    let generators: [(&str, Take); 2] = [("firn", &firn), ("ferroid", &ferroid)];
    let mut results = Vec::new();
    for (_, take) in generators {
        results.push((different(threads, take), Vec::new(), Vec::new()));
        round(threads, length, take); // warms up
    }
    for _ in 0..rounds {
        for ((_, take), (_, rates, cpu)) in generators.iter().zip(&mut results) {
            let (rate, cost) = round(threads, length, *take);
            rates.push(rate);
            cpu.push(cost);
        }
    }
    let told: Vec<String> = generators
        .iter()
        .zip(&results)
        .map(|((name, _), (different, rates, cpu))| {
            let taken = threads * CHECKED;
            format!("\"{name}\":{{\"taken\":{taken},\"different\":{different},\"rates\":{rates:?},\"cpu\":{cpu:?}}}")
        })
        .collect();
    println!("{{{}}}", told.join(","));
    std::process::exit(0);
}
