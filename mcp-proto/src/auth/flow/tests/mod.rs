//! Runs of flows in virtual time.

mod login;
mod refresh;
mod rig;
mod several;
