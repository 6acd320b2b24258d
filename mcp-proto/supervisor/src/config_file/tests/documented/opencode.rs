//! `opencode.json` of opencode: opencode.ai/v1/docs/mcp-servers
//! (packages/web/src/content/docs/mcp-servers.mdx), opencode.ai/v2/docs/mcp-servers,
//! packages/core/src/config/mcp.ts and opencode.ai/docs/config.

pub(super) const FILES: [(&str, &[&str], &[&str]); 12] = [
    (
        r##"{
          "$schema": "https://opencode.ai/config.json",
          "mcp": {
            "notes": {
              "type": "local",
              // Or ["bun", "x", "@acme/notes"]
              "command": ["npx", "-y", "@acme/notes"],
              "enabled": true,
              "environment": {"NOTES_KEY": "k-123"},
            },
          },
        }"##,
        &["notes npx -y @acme/notes NOTES_KEY="],
        &["$schema"],
    ),
    (
        r##"{
          "$schema": "https://opencode.ai/config.json",
          "mcp": {
            "ledger": {
              "type": "remote",
              "url": "https://ledger.example/mcp",
              "enabled": true,
              "headers": {"Authorization": "Bearer k-123"}
            }
          }
        }"##,
        &["ledger auto https://ledger.example/mcp Authorization:"],
        &["$schema"],
    ),
    (
        r##"{
          "mcp": {
            "tides": {"type": "local", "command": ["bun", "x", "tides"], "cwd": "./servers/tides", "timeout": 8000},
            "far": {"type": "remote", "url": "https://far.example/mcp", "enabled": false, "timeout": 15000}
          }
        }"##,
        &["tides bun x tides in ./servers/tides 8s", "far (off) auto https://far.example/mcp 15s"],
        &[],
    ),
    (
        r##"{
          "mcp": {
            "asks": {"type": "remote", "url": "https://asks.example/mcp", "oauth": {}},
            "registered": {
              "type": "remote",
              "url": "https://registered.example/mcp",
              "oauth": {"clientId": "{env:ACME_CLIENT}", "clientSecret": "{env:ACME_SECRET}", "scope": "read write"}
            }
          }
        }"##,
        &["asks auto https://asks.example/mcp", "registered auto https://registered.example/mcp as {env:ACME_CLIENT}"],
        &[],
    ),
    (
        r##"{
          "mcp": {
            "keyed": {
              "type": "remote",
              "url": "https://keyed.example/mcp",
              "oauth": false,
              "headers": {"Authorization": "Bearer {env:ACME_KEY}"}
            },
            "other": {
              "type": "remote",
              "url": "https://other.example/mcp",
              "headers": {"X-Acme-Key": "{file:~/.keys/acme}"}
            }
          }
        }"##,
        &["keyed auto https://keyed.example/mcp Authorization:", "other auto https://other.example/mcp X-Acme-Key:"],
        &[],
    ),
    (
        r##"{
          "mcp": {
            "one": {"type": "local", "command": ["bun", "x", "acme-one"]},
            "two": {"type": "local", "command": ["bun", "x", "acme-two", "{env:ACME_REGION}", "${TEXT}"]}
          },
          "tools": {"one": false, "two*": false}
        }"##,
        &["one bun x acme-one", "two bun x acme-two {env:ACME_REGION} ${TEXT}"],
        &["tools"],
    ),
    (
        r##"{
          "model": "acme/large",
          "mcp": {
            "search": {"type": "remote", "url": "https://search.example"}
          },
          "tools": {"search*": false},
          "agent": {"reader": {"tools": {"search*": true}}}
        }"##,
        &["search auto https://search.example"],
        &["model", "tools", "agent"],
    ),
    (
        r##"{
          "$schema": "https://opencode.ai/config.json",
          "mcp": {}
        }"##,
        &[],
        &["$schema"],
    ),
    // Version 2.
    (
        r##"{
          "$schema": "https://opencode.ai/config.json",
          "mcp": {
            "servers": {
              "notes": {
                "type": "local",
                "command": ["npx", "-y", "@acme/notes"],
              },
            },
          },
        }"##,
        &["notes npx -y @acme/notes"],
        &["$schema"],
    ),
    (
        r##"{
          "mcp": {
            "servers": {
              "tides": {
                "type": "local",
                "command": ["bun", "x", "tides"],
                "cwd": ".",
                "environment": {"LEVEL": "debug"},
                "disabled": true,
              },
            },
          },
        }"##,
        &["tides (off) bun x tides LEVEL= in ."],
        &[],
    ),
    (
        r##"{
          "mcp": {
            "servers": {
              "ledger": {
                "type": "remote",
                "url": "https://ledger.example/mcp",
                "headers": {"Authorization": "Bearer {env:LEDGER_TOKEN}"},
                "oauth": false
              },
              "registered": {
                "type": "remote",
                "url": "https://registered.example/mcp",
                "oauth": {"client_id": "acme-client", "callback_port": 9555}
              }
            }
          }
        }"##,
        &[
            "ledger auto https://ledger.example/mcp Authorization:",
            "registered auto https://registered.example/mcp as acme-client",
        ],
        &[],
    ),
    (
        r##"{
          "mcp": {
            "timeout": {"startup": 15000},
            "servers": {
              "slow": {
                "type": "local",
                "command": ["slow"],
                "timeout": {"startup": 20000, "catalog": 5000, "execution": 120000}
              }
            }
          }
        }"##,
        &["slow slow 120s"],
        &["mcp.timeout", "mcp.servers.slow.timeout.startup", "mcp.servers.slow.timeout.catalog"],
    ),
];
