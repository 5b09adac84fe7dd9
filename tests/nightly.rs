//! Tests of `nightly`: whatever the order of nights, withdrawals, compactions and deaths, the outputs and the
//! state say what one `dedup` over the documents that are left says.

mod attacks;
mod damage;
mod families;
mod full_disk;
mod index;
mod kills;
mod law;
mod ledger;
mod refusals;
mod repair;
pub mod sequence;
mod servers;
mod since;
mod sleeps;
mod takedown;
