//! Runs of flows in virtual time.

mod attacks;
mod clients;
mod device;
mod dpop;
mod grants;
mod issuer;
mod login;
mod providers;
mod refresh;
mod rig;
mod several;
mod step_up;
