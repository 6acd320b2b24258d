//! The names of methods.

use super::scalar::read_str;
use alloc::borrow::Cow;

/// The methods of the protocol that are received again and again. Their names are not copied.
const FREQUENT: [&str; 22] = [
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "logging/setLevel",
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/resources/updated",
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
];

/// Returns the name in a validated JSON value. `None` if it is no string, or has a lone surrogate.
pub(super) fn read_method(value: &[u8]) -> Option<Cow<'static, str>> {
    let name = read_str(value)?;
    match FREQUENT.into_iter().find(|frequent| *frequent == name) {
        Some(frequent) => Some(Cow::Borrowed(frequent)),
        None => Some(Cow::Owned(name.into_owned())),
    }
}
