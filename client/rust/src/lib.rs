//! Client of Firn, an id service: 64-bit ids that are never issued twice.
//!
//! ```no_run
//! #[tokio::main]
//! async fn main() -> Result<(), firn_client::Error> {
//!     // Any one server of the cluster is enough to find all of them.
//!     let client = firn_client::Client::new("firn://127.0.0.1:7609")?;
//!     println!("{}", client.next_id("order").await?); // one id
//!     println!("{:?}", client.next_ids("order", 100).await?); // many in one call
//!     Ok(())
//! }
//! ```
//!
//! "order" is a *tag*, the name under which a program asks for ids.
//!
//! The client discovers the servers, balances calls by load, and fails over within a call when a server does not
//! respond. [`Error::attempts`] lists what happened.
//!
//! [`LocalGenerator`] makes ids in this process, under a machine id that servers lease to it.
//!
//! # Features
//!
//! * `tls`: TLS to the servers, with rustls and ring (`Options::tls`).
//! * `blocking`: `blocking::Client`, for programs without a Tokio runtime.
//! * `metrics`: counters and a histogram for the recorder of the crate `metrics`: `firn_client_calls_total`,
//!   `firn_client_call_seconds`, `firn_client_attempts_failed_total`, `firn_client_events_total` and
//!   `firn_client_prefetched_ids_total`.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "blocking")]
pub mod blocking;
mod call;
mod choice;
mod client;
mod codec;
mod connection;
mod counters;
mod dial;
mod engine;
mod error;
mod fleet;
mod health;
mod health_rules;
mod layout;
mod lease;
mod meter;
mod options;
mod pipe;
mod random;
mod ranges;
mod server;
#[cfg(feature = "blocking")]
mod sockets;
#[cfg(feature = "tls")]
mod tls;
mod upkeep;
mod wire;

pub use client::Client;
pub use counters::Counters;
pub use error::{Attempt, End, Error, ErrorKind, Reason};
pub use lease::{LeaseLoss, LeaseOptions, LocalGenerator, LossKind};
#[cfg(feature = "tls")]
pub use options::Tls;
pub use options::{Event, EventKind, LocalTag, Options};
pub use server::{SeenServer, ServerHealth};
