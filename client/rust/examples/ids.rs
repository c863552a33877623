//! Takes ids with every kind of call, and prints events about servers.
//!
//!     cargo run --features blocking --example ids -- firn://127.0.0.1:7609 [TAG]

use std::time::Duration;

use firn_client::{Client, ErrorKind, LocalTag, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let servers = arguments.next().ok_or("usage: ids firn://host:port [TAG]")?;
    let tag = arguments.next().unwrap_or_else(|| "default".to_owned());
    let options = Options::new()
        .deadline(Duration::from_secs(2))
        .attempt_limit(Duration::from_secs(1))
        .local_range(LocalTag::snowflake(&tag))
        .on_event(|event| eprintln!("{event}"));
    let client = Client::with_options(&servers, options)?;

    println!("one id: {}", client.next_id(&tag).await?);
    println!("a text: {}", client.next_text(&tag).await?);
    println!("{} ids in one call", client.next_ids(&tag, 100).await?.len());

    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (client, tag) = (client.clone(), tag.clone());
            tokio::spawn(async move {
                for _ in 0..1000 {
                    client.next_id(&tag).await?;
                }
                Ok::<(), firn_client::Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    println!("4000 ids from memory");

    // A refusal says why; every server would refuse this tag.
    let unknown = client.within(Duration::from_millis(500)).next_id("no such tag").await;
    match unknown {
        Err(error) if error.kind() == ErrorKind::Refused => println!("refused: {:?}: {error}", error.reason()),
        other => println!("{other:?}"),
    }

    for server in client.servers() {
        println!("{} is {}", server.address, server.health);
    }
    Ok(())
}
