//! Files of variables (`envFile`): lines of `NAME=value`, as Node.js and the package dotenv read
//! them.

use super::error::EnvFileFault;
use super::limits::MAX_LEN;
use alloc::string::String;
use alloc::vec::Vec;

/// Parses a file of variables. A later line wins over an earlier one of the same name; both are in
/// the result.
///
/// # Errors
/// The line, from 1, and what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, (u32, EnvFileFault)> {
    if text.len() > MAX_LEN {
        return Err((1, EnvFileFault::TooLong));
    }
    let mut variables = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    while !rest.is_empty() {
        let at = line;
        let found = assignment(&mut rest, &mut line).map_err(|fault| (at, fault))?;
        variables.extend(found);
    }
    Ok(variables)
}

/// Takes a line, or several if a value in quotes has line ends. `None` without an assignment.
fn assignment(rest: &mut &str, line: &mut u32) -> Result<Option<(String, String)>, EnvFileFault> {
    let whole = *rest;
    let (first, after) = whole.split_once('\n').unwrap_or((whole, ""));
    let code = first.trim();
    if code.is_empty() || code.starts_with('#') {
        *rest = after;
        *line += 1;
        return Ok(None);
    }
    let (name, value) = first.split_once('=').ok_or(EnvFileFault::NoAssignment)?;
    let name = name.trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '\0' || c == '#') {
        return Err(EnvFileFault::Illegal);
    }
    // The value may go on behind the line.
    let value = &whole[first.len() - value.len()..];
    let value = value.trim_start_matches([' ', '\t']);
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => {
            let (inside, behind) = value[1..].split_once(quote).ok_or(EnvFileFault::Quotes)?;
            let (end, after) = behind.split_once('\n').unwrap_or((behind, ""));
            let end = end.trim();
            if !end.is_empty() && !end.starts_with('#') {
                return Err(EnvFileFault::Quotes);
            }
            *line += u32::try_from(inside.matches('\n').count()).unwrap_or(u32::MAX) + 1;
            *rest = after;
            let inside = inside.replace("\r\n", "\n");
            if quote == '"' { inside.replace("\\n", "\n") } else { inside }
        }
        _ => {
            *rest = after;
            *line += 1;
            let value = value.split('\n').next().unwrap_or_default();
            value.split('#').next().unwrap_or_default().trim().into()
        }
    };
    if value.contains('\0') { Err(EnvFileFault::Illegal) } else { Ok(Some((name.into(), value))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // covers: S0-06
    #[test]
    fn lines_are_assignments_with_comments_and_quotes() {
        let text = "\u{feff}# comment\n\nA=1\r\n export B = two words # comment\nC=\"a # b\\nc\" # comment\n\
                    D='a\\n\"b\"'\nE=`a'b`\nF=\nG=\"two\nlines\"\nA=2\nH= a=b ";
        let found = parse(text).unwrap();
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a # b\nc"),
            ("D", "a\\n\"b\""),
            ("E", "a'b"),
            ("F", ""),
            ("G", "two\nlines"),
            ("A", "2"),
            ("H", "a=b"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (String::from(name), String::from(value))));
    }

    #[test]
    fn lines_that_cannot_be_read_are_named() {
        for (text, line, fault) in [
            ("A=1\nsecret\n", 2, EnvFileFault::NoAssignment),
            ("=x", 1, EnvFileFault::Illegal),
            ("A B=x", 1, EnvFileFault::Illegal),
            ("A=\"a\nb\"\nB='x\n", 3, EnvFileFault::Quotes),
            ("A=\"a\" b", 1, EnvFileFault::Quotes),
            ("A=a\0", 1, EnvFileFault::Illegal),
        ] {
            assert_eq!(parse(text), Err((line, fault)), "{text:?}");
        }
        assert_eq!(parse(&"#".repeat(MAX_LEN + 1)), Err((1, EnvFileFault::TooLong)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[A=\"'`# \r\n\\\\né]{0,40}") {
            if let Err((line, _)) = parse(&text) {
                prop_assert!((1..=text.matches('\n').count() as u32 + 1).contains(&line));
            }
        }
    }
}
