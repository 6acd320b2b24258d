//! `settings.json` of Zed: zed.dev/docs/ai/mcp (docs/src/ai/mcp.md, also of 2025) and
//! crates/settings_content/src/project.rs.

pub(super) const FILES: [(&str, &[&str], &[&str]); 10] = [
    (
        r##"{
          "context_servers": {
            "local": {"command": "acme-local", "args": ["--level", "info"], "env": {}},
            "ledger": {"url": "https://ledger.example/mcp", "headers": {"Authorization": "Bearer k-123"}},
            "asks": {"url": "https://asks.example/mcp"}
          }
        }"##,
        &[
            "local acme-local --level info",
            "ledger auto https://ledger.example/mcp Authorization:",
            "asks auto https://asks.example/mcp",
        ],
        &[],
    ),
    (
        r##"{
          "theme": "Dusk",
          "context_servers": {
            "local": {"source": "custom", "command": "acme-local", "args": ["--level", "info"], "env": {}}
          }
        }"##,
        &["local acme-local --level info"],
        &["theme", "context_servers.local.source"],
    ),
    // The documentation of the beginning of 2025.
    (
        r##"{
          "context_servers": {
            "local": {
              "command": {
                "path": "acme-local",
                "args": ["--level", "info"],
                "env": {"ACME_KEY": "k-123"}
              },
              "settings": {}
            }
          }
        }"##,
        &["local acme-local --level info ACME_KEY="],
        &["context_servers.local.settings"],
    ),
    (
        r##"{
          "context_servers": {
            "off": {"enabled": false, "command": "npx", "args": ["-y", "@acme/off"]},
            "far": {"enabled": true, "remote": true, "command": "far"}
          }
        }"##,
        &["off (off) npx -y @acme/off", "far far"],
        &["context_servers.far.remote"],
    ),
    (
        r##"{
          "context_server_timeout": 90,
          "context_servers": {
            "slow": {"command": "slow", "args": [], "timeout": 240},
            "far": {"url": "https://far.example/mcp", "timeout": 45}
          }
        }"##,
        &["slow slow 240s", "far auto https://far.example/mcp 45s"],
        &["context_server_timeout"],
    ),
    (
        r##"{
          "context_servers": {
            "registered": {
              "url": "https://registered.example/mcp",
              "oauth": {"client_id": "acme-client", "client_secret": "s-123"}
            }
          }
        }"##,
        &["registered auto https://registered.example/mcp as acme-client"],
        &["context_servers.registered.oauth.client_secret"],
    ),
    // A server of an extension: only the client knows its program.
    (
        r##"{
          "context_servers": {
            "extension": {"enabled": true, "settings": {"acme_token": "k-123"}}
          }
        }"##,
        &["extension! `command` or `url` is missing"],
        &["context_servers.extension.settings"],
    ),
    (
        r##"{
          "agent": {
            "tool_permissions": {"default": "confirm"},
            "profiles": {
              "careful": {
                "name": "Careful",
                "tools": {"terminal": false},
                "enable_all_context_servers": false,
                "context_servers": {"files": {"tools": {"read": true}}}
              }
            }
          },
          "context_servers": {
            "files": {"command": "npx", "args": ["-y", "@acme/files", "/srv"]}
          }
        }"##,
        &["files npx -y @acme/files /srv"],
        &["agent"],
    ),
    (
        r##"// Settings
        {
          "context_servers": {
            "container": {
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "ACME_TOKEN", "acme/container", "${NOT_A_VARIABLE}"],
              "env": {"ACME_TOKEN": "$TOKEN"},
            },
          },
        }"##,
        &["container docker run -i --rm -e ACME_TOKEN acme/container ${NOT_A_VARIABLE} ACME_TOKEN="],
        &[],
    ),
    (
        r##"{
          "context_servers": {},
        }"##,
        &[],
        &[],
    ),
];
