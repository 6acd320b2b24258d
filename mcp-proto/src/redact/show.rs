//! Configuration values, displayed without their secrets.

use super::Side;
use super::names::{is_secret, shows_field};
use super::pairs::Pairs;
use crate::peer_text::Visible;
use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write};

/// Replaces a hidden part.
const HIDDEN: &str = "…";

/// A URL, or a path with a query. `Display` and `Debug` show it without user and password, and
/// without the values of query and fragment parameters whose names [are
/// secret](super::is_secret_name). `Display` has [escapes](crate::error#text-of-a-peer).
#[derive(Clone, Copy)]
pub struct Url<'a>(pub &'a str);

impl fmt::Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(|part| write!(f, "{}", Visible(part)))
    }
}

impl fmt::Debug for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = String::new();
        self.show(|part| shown.write_str(part))?;
        shown.fmt(f)
    }
}

impl Url<'_> {
    /// Passes the visible parts to `show`, one by one.
    fn show(&self, mut show: impl FnMut(&str) -> fmt::Result) -> fmt::Result {
        let mut rest = self.0;
        if let Some((scheme, after)) = rest.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', '#'])) {
            let (authority, after) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
            show(scheme)?;
            show("://")?;
            let host = match authority.rsplit_once('@') {
                Some((_, host)) => {
                    show(HIDDEN)?;
                    show("@")?;
                    host
                }
                None => authority,
            };
            show(host)?;
            rest = after;
        }
        for part in rest.split_inclusive(['?', '&', '#', ';']) {
            let (pair, end) = match part.char_indices().next_back() {
                Some((at, '?' | '&' | '#' | ';')) => part.split_at(at),
                _ => (part, ""),
            };
            match pair.split_once('=') {
                Some((name, _)) if is_secret(name) => [name, "=", HIDDEN, end].into_iter().try_for_each(&mut show)?,
                _ => show(part)?,
            }
        }
        Ok(())
    }
}

/// The value of a header field. If the field is on the list of its side, `Debug` shows it without
/// the secrets of URLs and of running text.
pub(crate) struct HeaderField<'a> {
    /// The name.
    pub(crate) name: &'a str,
    /// The value.
    pub(crate) value: &'a str,
    /// The sender. Fields of an application belong to the side of requests.
    pub(crate) side: Side,
}

impl fmt::Debug for HeaderField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = Pairs::of_field(self.name.as_bytes());
        if shows_field(self.name.as_bytes(), self.side) {
            Url(&masked(pairs, self.value)).fmt(f)
        } else {
            HIDDEN.fmt(f)
        }
    }
}

/// Arguments of a program. `Debug` shows them without the value of an option with a secret name
/// (`--token x`, `--api-key=x`), without the values of secret variables (`TOKEN=x`) and header
/// fields (`Authorization: x`), and without the secrets of URLs.
#[derive(Clone, Copy)]
pub struct Arguments<'a>(pub &'a [String]);

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        let mut hide = false;
        for arg in self.0 {
            let is_option = arg.starts_with('-');
            if hide && !is_option {
                list.entry(&HIDDEN);
                hide = false;
                continue;
            }
            list.entry(&Argument(arg));
            hide = is_option && !arg.contains('=') && is_secret(arg);
        }
        list.finish()
    }
}

/// One argument, regardless of those before it.
struct Argument<'a>(&'a str);

impl fmt::Debug for Argument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = self.0.split_once(['=', ':']).filter(|(name, _)| is_secret(name)) {
            let shown = format!("{name}{}{HIDDEN}", &self.0[name.len()..=name.len()]);
            return shown.fmt(f);
        }
        let shown = masked(Pairs::default(), self.0);
        if self.0.contains("://") { Url(&shown).fmt(f) } else { shown.fmt(f) }
    }
}

/// Masks the secrets in running text. A masked part begins and ends at an ASCII character.
fn masked(mut pairs: Pairs, text: &str) -> String {
    text.chars().map(|c| if pairs.masks(u8::try_from(c).unwrap_or(0xFF)) { 'x' } else { c }).collect()
}
