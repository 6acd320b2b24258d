//! The exit codes of the command: all of them, and nowhere else.

/// The table in the help and in the man page, with the shape of a failure for programs.
pub(crate) const HELP: &str = "Exit codes: 0 success, 1 the server or the tool answered with an error, \
                               2 wrong arguments or file, 3 no connection, 4 timeout, 5 declined, \
                               6 a limit of this command was exceeded, 7 no login, or one that is refused, 130 interrupted\n\n\
                               With --json a failure is one line on standard output: {\"error\":{\"kind\":KIND,\"message\":TEXT,\
                               \"advice\":[TEXT],\"exitCode\":N}}. KIND is usage, connection, timeout, server, limit, login, declined \
                               or output. There may be \"request\" (the method and what it names), \"code\" (of JSON-RPC) and \
                               \"httpStatus\". A list that fails in part has its \"error\" beside the lists. doctor prints \
                               {\"server\":TEXT,\"exitCode\":N,\"findings\":[{\"verdict\":\"ok\"|\"no\"|\"fail\",\"what\":TEXT,\
                               \"text\":TEXT,\"advice\":[TEXT]}],\"stderr\":[TEXT]}.";

/// The server or the tool answered with an error, `doctor` found a fault, or the output cannot be
/// written.
pub(crate) const FAULT: u8 = 1;

/// The arguments or a file are wrong: nothing was called.
pub(crate) const USAGE: u8 = 2;

/// There is no connection, or it was lost.
pub(crate) const NO_CONNECTION: u8 = 3;

/// The server did not answer in time.
pub(crate) const TIMEOUT: u8 = 4;

/// The user declined to start or to contact a server, or to log in.
pub(crate) const DECLINED: u8 = 5;

/// The server sent more than a limit of this command allows, whatever the transport.
pub(crate) const LIMIT: u8 = 6;

/// The server demands a login, and there is none, or it failed.
pub(crate) const LOGIN: u8 = 7;

/// Ctrl-C: the code of a shell.
pub(crate) const INTERRUPTED: i32 = 130;
