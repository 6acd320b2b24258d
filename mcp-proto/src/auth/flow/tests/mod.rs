//! Runs of flows in virtual time.

mod device;
mod dpop;
mod grants;
mod issuer;
mod login;
mod refresh;
mod rig;
mod several;
