//! The commands of an application to its server that never wait.

use super::gateway::GatewayShared;
use super::server::ServerShared;
use crate::shared_router::SharedRouter;
use alloc::sync::Arc;
use core::fmt;
use mcp_proto::input::{Change, Principal, ServerCommand};
use mcp_proto::route::{BadReplacement, Router};

/// The commands of an application to its server: [`Server`](super::Server) and
/// [`Gateway`](super::Gateway) deref to it. Cheap to clone. It does not keep the server running,
/// and after the end its commands do nothing.
#[derive(Clone)]
pub struct ServerHandle(Arc<dyn CommandTarget>);

/// What the handle of a server leads to.
trait CommandTarget: Send + Sync {
    /// Executes a command that is never refused.
    fn execute(&self, command: ServerCommand);
    fn router(&self) -> &SharedRouter;
}

impl ServerHandle {
    pub(super) fn of_server(server: &Arc<ServerShared>) -> Self {
        Self(Arc::clone(server) as _)
    }

    pub(super) fn of_gateway(gateway: &Arc<GatewayShared>) -> Self {
        Self(Arc::clone(gateway) as _)
    }

    /// Notifies the clients that subscribed to a change. Never waits. In a handler,
    /// [`Cx::publish`](mcp_proto::Cx::publish) does the same.
    pub fn publish(&self, change: Change) {
        self.0.execute(ServerCommand::Publish(change));
    }

    /// Replaces the router, and notifies the clients of the lists that differ: see
    /// [`Router::replace`]. Never waits for a client. In a handler,
    /// [`Cx::replace`](mcp_proto::Cx::replace) does the same.
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    pub fn replace(&self, router: Router) -> Result<(), BadReplacement> {
        self.update(|_| router.clone())
    }

    /// Replaces the router by what this function makes of it, as [`replace`](Self::replace) does.
    /// The function runs again if another replacement came between, so that none is lost. It must
    /// not replace the router itself.
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    pub fn update(&self, mut change: impl FnMut(Router) -> Router) -> Result<(), BadReplacement> {
        let changes = self.0.router().update(&mut change)?;
        changes.into_iter().for_each(|change| self.publish(change));
        Ok(())
    }

    /// The web page of this id is complete. Notifies the client that was asked to open it, and no
    /// other. In a handler, [`Cx::elicited`](mcp_proto::Cx::elicited) does the same. Never waits.
    pub fn elicited(&self, id: &str) {
        self.0.execute(ServerCommand::Elicited(id.into()));
    }

    /// Ends everything that [`ServerOptions::on_admit`](crate::ServerOptions::on_admit) admitted
    /// for this principal: see [`revoke`](mcp_proto::ServerCommands::revoke). Let `on_admit` refuse
    /// the principal first. Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.0.execute(ServerCommand::Revoke(principal.clone()));
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerHandle(..)")
    }
}

impl CommandTarget for ServerShared {
    fn execute(&self, command: ServerCommand) {
        // Only notifications on a request are refused.
        let _ = self.command(command);
    }

    fn router(&self) -> &SharedRouter {
        &self.setup.router
    }
}

impl CommandTarget for GatewayShared {
    fn execute(&self, command: ServerCommand) {
        // As above.
        let _ = self.command(command);
    }

    fn router(&self) -> &SharedRouter {
        &self.setup.router
    }
}
