//! A link for a driver whose engine is behind no lock.

use super::job::ServerLink;
use super::sync::{Mutex, lock};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::task::Waker;
use mcp_proto::error::Refusal;
use mcp_proto::input::ServerCommand;

/// The commands of callbacks for a driver that keeps its engine to itself: a loop in one thread.
/// They wait here until the loop takes them. Cloning returns the same mailbox.
#[derive(Clone, Debug, Default)]
pub struct Mailbox(Arc<Mutex<MailboxState>>);

#[derive(Debug, Default)]
struct MailboxState {
    queue: VecDeque<ServerCommand>,
    driver: Option<Waker>,
}

impl Mailbox {
    /// Maximum number of notifications that wait. Further ones are refused with
    /// [`Refusal::Full`]. Answers are never refused: there are at most as many as requests.
    pub const MAX_NOTES: usize = 1024;

    /// Returns the link of this mailbox. The engine's own refusals of notifications are dropped.
    pub fn link(&self) -> ServerLink {
        let mailbox = self.clone();
        Arc::new(move |command| mailbox.push(command))
    }

    /// Returns the next command. If there is none, `waker` is woken by the next one.
    pub fn poll(&self, waker: &Waker) -> Option<ServerCommand> {
        let mut mail = lock(&self.0);
        let command = mail.queue.pop_front();
        if command.is_none() {
            mail.driver = Some(waker.clone());
        }
        command
    }

    fn push(&self, command: ServerCommand) -> Result<(), Refusal> {
        let mut mail = lock(&self.0);
        if matches!(command, ServerCommand::Notify(..)) && mail.queue.len() >= Self::MAX_NOTES {
            return Err(Refusal::Full);
        }
        mail.queue.push_back(command);
        let driver = mail.driver.take();
        drop(mail);
        driver.into_iter().for_each(Waker::wake);
        Ok(())
    }
}
