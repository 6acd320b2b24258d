//! Configuration files that list servers.

use mcp_supervisor::config_file::{ConfigError, ConfigFile, Dialect, Trust, Variable};

/// What the look-up returns. No file of a fuzzer contains it by chance.
const SECRET: &str = "t0ps3cret-of-the-look-up";

/// The first byte selects a dialect, or none. The others are the file.
///
/// A file is parsed or refused. Each error has a position inside the text. Every name of a server
/// leads to its server. With values for all variables, a server is converted or refused, a program
/// of a project or one that refers to a variable is not converted, and no error contains a value.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let Some((first, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let file = match first % 6 {
        0 => ConfigFile::parse_as(Dialect::GeminiCli, &text),
        1 => ConfigFile::parse_as(Dialect::OpenCode, &text),
        2 => ConfigFile::parse_as(Dialect::VsCode, &text),
        3 => ConfigFile::parse_as(Dialect::Zed, &text),
        _ => ConfigFile::parse(&text),
    };
    match file {
        Ok(file) => check_file(&file, &text),
        Err(why) => check_error(&why, &text),
    }
}

fn check_file(file: &ConfigFile, text: &str) {
    let is_known = !text.contains(SECRET);
    for (name, server) in file.servers() {
        assert!(file.server(name).is_some_and(|found| found == server), "{name}");
        let entry = match server {
            Ok(entry) => entry,
            Err(why) => {
                check_error(why, text);
                continue;
            }
        };
        assert_eq!(entry.name(), name);
        assert!(entry.command().is_some() != entry.url().is_some());
        let lookup = |variable: Variable<'_>| match variable {
            Variable::EnvFile(_) => Some(format!("A={SECRET}\n")),
            _ => Some(SECRET.to_owned()),
        };
        let trusted = entry.client_config(&lookup, Trust::Trusted);
        let project = entry.client_config(&lookup, Trust::Project);
        let asks = entry.command().is_some() || !entry.variables().is_empty();
        assert!(!asks || project.is_err(), "a server of a project is connected to unconfirmed");
        match trusted {
            Ok(config) => {
                let preview = entry.preview();
                assert!(preview.to_string().lines().count() >= 2);
                assert_eq!(preview.confirmed(&lookup), Ok(config));
            }
            Err(why) => {
                check_error(&why, text);
                assert!(!is_known || !format!("{why} {why:?}").contains(SECRET));
            }
        }
        // None has a value.
        if let Err(why) = entry.client_config(&|_| None, Trust::Trusted) {
            check_error(&why, text);
        }
    }
    for why in file.inputs().filter_map(Result::err) {
        check_error(why, text);
    }
    let positions: Vec<_> = file.ignored().iter().map(|member| (member.line, member.column)).collect();
    assert!(positions.is_sorted());
    assert!(format!("{file:?}").len() < 64 * (text.len() + 64));
}

fn check_error(why: &ConfigError, text: &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let line = text.split('\n').nth(why.line as usize - 1).unwrap_or_else(|| panic!("{why}: no such line"));
    assert!((1..=line.chars().count() + 1).contains(&(why.column as usize)), "{why}: no such column");
    assert!(!why.to_string().contains(|c: char| c.is_control()), "{why}");
}
