#![forbid(unsafe_code)]
//! Which processes the end of a host leaves. In a process of its own: it takes over the orphans of
//! its children, and counts them.

mod interrupt;
mod orphans;
