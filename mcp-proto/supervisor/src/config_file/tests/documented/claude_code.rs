//! `.mcp.json`, `~/.claude.json` and `plugin.json` of Claude Code: code.claude.com/docs/en/mcp,
//! docs/en/mcp-quickstart, docs/en/managed-mcp and docs/en/plugins-reference.

pub(super) const FILES: [(&str, &[&str], &[&str]); 12] = [
    (
        r##"{
          "mcpServers": {
            "manual": {"type": "http", "url": "https://manual.example/mcp"},
            "browser": {"type": "stdio", "command": "npx", "args": ["-y", "@acme/browser@latest"]}
          }
        }"##,
        &["manual streamable https://manual.example/mcp", "browser npx -y @acme/browser@latest"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "old": {
              "type": "sse",
              "url": "https://old.example/sse",
              "headers": {"X-Acme-Key": "k-123"}
            },
            "alias": {"type": "streamable-http", "url": "https://alias.example/mcp"}
          }
        }"##,
        &["old auto https://old.example/sse X-Acme-Key:", "alias streamable https://alias.example/mcp"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "ticker": {
              "type": "ws",
              "url": "wss://ticker.example/socket",
              "headers": {"Authorization": "Bearer ${TICKER_TOKEN}"},
              "timeout": 60000,
              "alwaysLoad": false
            }
          }
        }"##,
        &["ticker auto wss://ticker.example/socket Authorization: 60s"],
        &["mcpServers.ticker.alwaysLoad"],
    ),
    (
        r##"{
          "mcpServers": {
            "ledger": {
              "type": "http",
              "url": "${API_BASE_URL:-https://ledger.example}/mcp",
              "headers": {"Authorization": "Bearer ${LEDGER_KEY}"}
            },
            "local": {
              "command": "${CLAUDE_PROJECT_DIR:-.}/bin/ledger",
              "args": ["--root", "${LEDGER_ROOT:-/var/ledger}"],
              "env": {"LEDGER_KEY": "${LEDGER_KEY}"}
            }
          }
        }"##,
        &[
            "ledger streamable ${API_BASE_URL:-https://ledger.example}/mcp Authorization:",
            "local ${CLAUDE_PROJECT_DIR:-.}/bin/ledger --root ${LEDGER_ROOT:-/var/ledger} LEDGER_KEY=",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "index": {
              "command": "${CLAUDE_PLUGIN_ROOT}/bin/index",
              "args": ["--settings", "${CLAUDE_PLUGIN_ROOT}/index.toml", "--depth", "${user_config.depth}"],
              "env": {"INDEX_DIR": "${CLAUDE_PLUGIN_DATA}/index"}
            },
            "index-api": {"type": "http", "url": "${user_config.endpoint}/mcp"}
          }
        }"##,
        &[
            "index ${CLAUDE_PLUGIN_ROOT}/bin/index --settings ${CLAUDE_PLUGIN_ROOT}/index.toml --depth ${user_config.depth} INDEX_DIR=",
            "index-api streamable ${user_config.endpoint}/mcp",
        ],
        &[],
    ),
    (
        r##"{
          "name": "acme-plugin",
          "version": "2.0.1",
          "mcpServers": {
            "api": {"command": "${CLAUDE_PLUGIN_ROOT}/bin/api", "args": ["--port", "9100"]}
          }
        }"##,
        &["api ${CLAUDE_PLUGIN_ROOT}/bin/api --port 9100"],
        &["name", "version"],
    ),
    // The documentation of 2025: a plugin's file is the list, and servers have a directory.
    (
        r##"{
          "index": {
            "command": "${CLAUDE_PLUGIN_ROOT}/bin/index",
            "args": ["--settings", "${CLAUDE_PLUGIN_ROOT}/index.toml"],
            "env": {"INDEX_URL": "${INDEX_URL}"}
          },
          "runner": {"command": "npx", "args": ["@acme/runner"], "cwd": "${CLAUDE_PLUGIN_ROOT}"}
        }"##,
        &[
            "index ${CLAUDE_PLUGIN_ROOT}/bin/index --settings ${CLAUDE_PLUGIN_ROOT}/index.toml INDEX_URL=",
            "runner npx @acme/runner in ${CLAUDE_PLUGIN_ROOT}",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "inside": {
              "type": "http",
              "url": "https://inside.example",
              "headersHelper": "echo '{\"X-Acme\": \"'\"$(acme-token)\"'\"}'"
            }
          }
        }"##,
        &["inside streamable https://inside.example"],
        &["mcpServers.inside.headersHelper"],
    ),
    (
        r##"{
          "mcpServers": {
            "registered": {
              "type": "http",
              "url": "https://registered.example/mcp",
              "oauth": {
                "clientId": "acme-client",
                "callbackPort": 9555,
                "authServerMetadataUrl": "https://login.example/.well-known/openid-configuration",
                "scopes": "read write"
              }
            }
          }
        }"##,
        &["registered streamable https://registered.example/mcp as acme-client"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "slow": {"type": "http", "url": "https://slow.example/mcp", "alwaysLoad": true, "timeout": 900000}
          }
        }"##,
        &["slow streamable https://slow.example/mcp 900s"],
        &["mcpServers.slow.alwaysLoad"],
    ),
    // `~/.claude.json`: those of the user, and of a project.
    (
        r##"{
          "mcpServers": {
            "manual": {"type": "http", "url": "https://manual.example/mcp"}
          },
          "projects": {
            "/home/ann/work": {"mcpServers": {"pay": {"type": "http", "url": "https://pay.example"}}}
          }
        }"##,
        &["manual streamable https://manual.example/mcp"],
        &["projects"],
    ),
    (
        r##"{
          "mcpServers": {}
        }"##,
        &[],
        &[],
    ),
];
