//! Ids that are made in this process, under a machine id that servers lease to it.

mod generator;
mod ids;
mod lessee;
mod pace;
mod terms;
mod tick_ids;
mod transport;
pub(crate) mod wire;

pub use generator::{LeaseOptions, LocalGenerator};
pub use lessee::{LeaseLoss, LossKind};

#[cfg(test)]
mod generator_tests;
#[cfg(test)]
mod ids_tests;
#[cfg(test)]
mod lessee_tests;
#[cfg(test)]
mod player;
