//! Bursts of INCR by redis-rs: see bursts.py.

use std::time::Instant;

#[tokio::main]
async fn main() {
    let said: Vec<usize> = std::env::args().skip(1).map(|one| one.parse().unwrap()).collect();
    let client = redis::Client::open(format!("redis://127.0.0.1:{}/", said[0])).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    for _ in 0..said[2] {
        let began = Instant::now();
        let calls: Vec<_> = (0..said[1])
            .map(|_| {
                let mut connection = connection.clone();
                tokio::spawn(
                    async move { redis::cmd("INCR").arg("default").query_async::<i64>(&mut connection).await },
                )
            })
            .collect();
        let mut failed = 0;
        for call in calls {
            failed += usize::from(call.await.unwrap().is_err());
        }
        println!("{failed} {}", began.elapsed().as_secs_f64() * 1000.0);
    }
}
