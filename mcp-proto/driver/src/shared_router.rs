//! The router of a running server, which its handles and its handlers can replace.

use super::sync::{Mutex, lock, locked};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use mcp_proto::input::Change;
use mcp_proto::route::{BadReplacement, Router};
use mcp_proto::server::ServerConfig;

/// The router of a running server. Clones share it. A request is routed by the router that it has
/// then, and keeps that one.
#[derive(Clone)]
pub struct SharedRouter(Arc<Current>);

struct Current {
    router: Mutex<Router>,
    config: Arc<ServerConfig>,
}

impl SharedRouter {
    /// Shares the first router of a server. `config` is that of its engine.
    pub fn new(router: Router, config: Arc<ServerConfig>) -> Self {
        Self(Arc::new(Current { router: Mutex::new(router), config }))
    }

    /// Returns the router that the server has now.
    pub fn get(&self) -> Router {
        lock(&self.0.router).clone()
    }

    /// Replaces the router by what `change` makes of it, and returns the lists that differ: publish
    /// them afterwards. `change` runs again if another replacement came between, so that none is
    /// lost. It must not replace the router itself: it would run forever.
    ///
    /// # Errors
    /// As [`Router::replace`].
    pub fn update(&self, change: &mut dyn FnMut(Router) -> Router) -> Result<Vec<Change>, BadReplacement> {
        loop {
            let before = self.get();
            let mut after = before.clone();
            let changes = after.replace(change(before.clone()), &self.0.config)?;
            let replaced =
                |current: &mut Router| current.is_clone_of(&before).then(|| core::mem::replace(current, after));
            // The handlers of the one before may hold anything.
            if locked(&self.0.router, replaced).is_some() {
                return Ok(changes);
            }
        }
    }
}

impl fmt::Debug for SharedRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedRouter(..)")
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use mcp_proto::route::tool;

    #[test]
    fn replacement_that_came_between_is_not_lost() {
        let router = Router::new("n", "1").tools_change();
        let shared = SharedRouter::new(router.clone(), Arc::new(router.config()));
        let (mut runs, other) = (0, shared.clone());
        let changes = shared.update(&mut |router| {
            runs += 1;
            if runs == 1 {
                let add = |router: Router| router.tool(tool("between"), |_cx, ()| Ok("between"));
                other.update(&mut { add }).expect("tools are declared");
            }
            router.tool(tool("own"), |_cx, ()| Ok("own"))
        });
        assert_eq!((runs, changes.as_deref()), (2, Ok(&[Change::Tools][..])));
        // Removing a tool that is there changes the list.
        for name in ["own", "between"] {
            let removed = shared.update(&mut |router| router.without_tool(name));
            assert_eq!(removed.as_deref(), Ok(&[Change::Tools][..]), "{name}");
        }
    }
}
