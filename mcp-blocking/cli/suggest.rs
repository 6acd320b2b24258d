//! The form of a command line that a user may have meant.

use crate::output::word;

/// Returns the form for these words of a command line, if a program or a host is where the target
/// belongs. The first two words are the program and the command.
pub(crate) fn form(words: &[String]) -> Option<String> {
    let [_, command, target, rest @ ..] = words else { return None };
    let is_other = target.starts_with('-') || target.contains("://");
    if is_other || words.iter().any(|word| word == "--" || word == "--config" || word.starts_with("--config=")) {
        return None;
    }
    let operands = match command.as_str() {
        "list" | "inspect" | "doctor" | "login" | "logout" => "",
        "call" => " TOOL [ARGUMENTS]",
        "read" => " URI",
        "prompt" => " NAME",
        "complete" => " NAME ARGUMENT",
        _ => return None,
    };
    if is_host(target) {
        let scheme = if is_local(target) { "http" } else { "https" };
        return Some(format!("a URL has a scheme: mcp {command} {scheme}://{}", word(target)));
    }
    if target.ends_with(".json") {
        let file = word(target);
        return Some(format!("a configuration file needs --config: mcp {command} --config {file} NAME{operands}"));
    }
    if matches!(command.as_str(), "login" | "logout") {
        return None;
    }
    // The words after the program may also be those of the command.
    let rest: Vec<String> = match operands {
        "" => rest.iter().map(|rest| word(rest)).collect(),
        _ => vec!["…".to_owned()],
    };
    let program = [vec![word(target)], rest].concat().join(" ");
    Some(format!("a program goes after --: mcp {command}{operands} -- {program}"))
}

/// Returns whether a word is a host: with a port, or a name with dots before a path.
fn is_host(text: &str) -> bool {
    let (authority, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let (host, port) = authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    let is_name =
        |host: &str| !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.[]:".contains(c));
    let has_port = port.is_some_and(|port| !port.is_empty() && port.chars().all(|c| c.is_ascii_digit()));
    let has_dots = !host.starts_with('.') && host.contains('.') && path.is_some();
    is_name(host) && (has_port || host == "localhost" || has_dots)
}

fn is_local(text: &str) -> bool {
    ["localhost", "127.", "[::1]"].iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_has_the_program_or_the_host_in_its_place() {
        let of = |line: &str| form(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap_or_default();
        assert_eq!(of("mcp list npx -y x"), "a program goes after --: mcp list -- npx -y x");
        assert_eq!(of("mcp doctor ./server.py"), "a program goes after --: mcp doctor -- ./server.py");
        let call = "a program goes after --: mcp call TOOL [ARGUMENTS] -- npx …";
        assert_eq!(of("mcp call npx -y x"), call);
        assert_eq!(of("mcp list localhost:80/mcp"), "a URL has a scheme: mcp list http://localhost:80/mcp");
        assert_eq!(of("mcp list [::1]:80"), "a URL has a scheme: mcp list http://[::1]:80");
        assert_eq!(of("mcp list mcp.example.com/mcp"), "a URL has a scheme: mcp list https://mcp.example.com/mcp");
        assert_eq!(of("mcp login h.example/mcp"), "a URL has a scheme: mcp login https://h.example/mcp");
        let file = "a configuration file needs --config: mcp list --config mcp.json NAME";
        assert_eq!(of("mcp list mcp.json"), file);
        assert_eq!(of("mcp list ann:secret@h:80/x"), "a URL has a scheme: mcp list https://…@h:80/x");
        for other in [
            "mcp",
            "mcp list",
            "mcp list --quiet",
            "mcp list -- npx -y x",
            "mcp list http://h/ x",
            "mcp man a",
            "mcp login x",
        ] {
            assert_eq!(of(other), "", "{other}");
        }
    }
}
