//! What each thread of a connection does.

use super::ConnectionThreads;
use crate::driver::Driver;
use crate::os::ChildProcess;
use crate::stream;
use crate::transport::Reader;
use bytes::Bytes;
use mcp_driver::{StderrReader, Step, Transfer};
use std::io;
use std::sync::{Arc, Weak};

/// The way of a thread to its connection. It holds nothing of the client or the server, which may
/// end while the thread is stuck in the operating system.
#[derive(Clone)]
pub(super) struct Place {
    connection: Weak<ConnectionThreads>,
    driver: Weak<Driver>,
}

impl Place {
    pub(super) fn new(connection: &Arc<ConnectionThreads>, driver: &Arc<Driver>) -> Self {
        Self { connection: Arc::downgrade(connection), driver: Arc::downgrade(driver) }
    }

    fn get(&self) -> Option<(Arc<ConnectionThreads>, Arc<Driver>)> {
        self.connection.upgrade().zip(self.driver.upgrade())
    }

    fn report(&self, change: impl FnOnce(&mut Transfer)) {
        if let Some((connection, driver)) = self.get() {
            connection.report(&driver, change);
        }
    }

    /// Reads the connection to its end.
    pub(super) fn read(&self, reader: Reader) {
        // Nothing is read of a connection that waits for its admission.
        if self.wait_read() {
            stream::read(reader, |read| {
                if let Some((connection, driver)) = self.get() {
                    connection.report_read(&driver, read);
                }
                self.wait_read()
            });
        }
    }

    /// Waits until this thread may read. Returns false if nothing more is read.
    fn wait_read(&self) -> bool {
        self.connection.upgrade().is_some_and(|connection| connection.wait_read())
    }

    /// Waits until the connection is open, or was given up.
    fn wait_opened(&self) {
        while let Some(connection) = self.connection.upgrade() {
            let seen = connection.changes();
            if !connection.with(|state| state.connection.transfer().is_opening()) {
                return;
            }
            connection.wait_past(seen);
        }
    }

    /// Waits for the next step of the writing thread. `None` if nothing more is written.
    pub(super) fn next_step(&self) -> Option<Step> {
        loop {
            let connection = self.connection.upgrade()?;
            let seen = connection.changes();
            let next = connection.with(|state| {
                let step = state.writing.take_step(state.connection.transfer());
                if state.closed { Some(None) } else { step }
            });
            if let Some(step) = next {
                return step;
            }
            connection.wait_past(seen);
        }
    }

    /// Reports a write. Returns whether more may be written.
    pub(super) fn wrote(&self, wrote: io::Result<usize>) -> bool {
        self.report(|transfer| transfer.wrote(wrote));
        let connection = self.connection.upgrade();
        connection.is_some_and(|connection| connection.with(|state| state.connection.transfer().writes()))
    }

    /// Waits for the exit of a program.
    pub(super) fn wait_exited(&self, process: &ChildProcess) {
        let status = process.wait_exited();
        if let Some((connection, driver)) = self.get() {
            let now = driver.clock().now();
            connection.report(&driver, |transfer| transfer.exited(now, status));
        }
    }

    /// Reads the standard error of a program to its end. Calls the function of the application
    /// without a lock, so that the function may wait for the end of this program.
    pub(super) fn read_stderr(&self, errors: Reader, mut lines: StderrReader) {
        self.wait_opened();
        stream::read(errors, |read| {
            let bytes: Bytes = read.unwrap_or_default();
            lines.push(&bytes);
            self.report(|transfer| transfer.stderr(Ok(&bytes)));
            !bytes.is_empty()
        });
    }

    /// A thread of the connection ends.
    pub(super) fn ended(&self, panicked: bool) {
        let Some((connection, driver)) = self.get() else {
            // The connection has closed, so the driver counts this thread.
            return self.driver.upgrade().into_iter().for_each(|driver| driver.detached_ended());
        };
        if panicked {
            connection.report(&driver, |transfer| transfer.read(Err(io::ErrorKind::BrokenPipe.into())));
        }
        let was_closed = connection.with(|state| {
            state.threads -= 1;
            state.closed
        });
        if was_closed {
            driver.detached_ended();
        }
    }
}
