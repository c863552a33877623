use super::*;

fn run(first: i64, count: i32, stride: i64) -> Run {
    Run { first, count, stride }
}

fn buffer(runs: &[Run], asked_at: Instant) -> Buffer {
    let size = runs.iter().map(|run| run.count as u32).sum();
    Buffer { runs: runs.to_vec().into(), size, left: size, asked_at: Some(asked_at) }
}

fn shared() -> Shared {
    Supply::new(&LocalTag::segment("count")).shared.into_inner().unwrap()
}

#[test]
fn pieces_are_cut_from_runs_in_order() {
    let mut buffer = buffer(&[run(10, 5, 3), run(100, 2, 1)], Instant::now());
    assert_eq!(buffer.cut(2), run(10, 2, 3));
    assert_eq!(buffer.cut(9), run(16, 3, 3));
    assert_eq!(buffer.cut(9), run(100, 2, 1));
    assert_eq!((buffer.left, buffer.runs.len()), (0, 0));
}

#[test]
fn the_next_fetch_begins_when_half_is_used() {
    let (mut shared, now) = (shared(), Instant::now());
    assert_eq!(shared.to_fetch(now), Some(FIRST_FETCH));
    shared.next = buffer(&[run(1, 100, 1)], now);
    assert!(shared.prepare(&LocalTag::segment("count"), now));
    assert_eq!(shared.to_fetch(now), None);
    shared.in_use.cut(49);
    assert_eq!(shared.to_fetch(now), None);
    shared.in_use.cut(1);
    assert!(shared.to_fetch(now).is_some());
}

#[test]
fn a_fetch_that_is_used_up_too_soon_is_followed_by_a_larger_one() {
    let (mut shared, options, now) = (shared(), LocalTag::segment("count"), Instant::now());
    for step in 0..2 {
        shared.next = buffer(&[run(1, 1, 1)], now);
        assert!(shared.prepare(&options, now + step * Duration::from_millis(10)));
        shared.in_use.cut(1);
    }
    assert_eq!(shared.size, 8 * FIRST_FETCH);
}

#[test]
fn old_ids_are_dropped() {
    let (mut shared, options, now) = (shared(), LocalTag::snowflake("order"), Instant::now());
    shared.next = buffer(&[run(1, 100, 1)], now);
    assert!(shared.prepare(&options, now));
    assert!(!shared.prepare(&options, now + Duration::from_millis(1001)));
}

#[test]
fn a_deleted_tag_drops_ids_and_a_refused_size_is_halved() {
    let (mut shared, now) = (shared(), Instant::now());
    shared.in_use = buffer(&[run(1, 100, 1)], now);
    assert!(!shared.failed(&Error::bad_request("too many"), 100, now));
    assert_eq!((shared.most.unwrap().0, shared.in_use.left), (50, 100));
    let unknown = Error::new(ErrorKind::Refused, "unknown").with_refusal(Some(Reason::UnknownTag), None);
    assert!(shared.failed(&unknown, 100, now));
    assert_eq!(shared.in_use.left, 0);
    assert_eq!(shared.to_fetch(now), None);
    assert!(shared.to_fetch(now + Duration::from_secs(2)).is_some());
}
