//! `.mcp.json` of Claude Code: code.claude.com/docs/en/mcp and docs/en/plugins-reference.

pub(super) const FILES: [(&str, &[&str], &[&str]); 10] = [
    (
        r##"{
          "mcpServers": {
            "shared-server": {"command": "/path/to/server", "args": [], "env": {}}
          }
        }"##,
        &["shared-server /path/to/server"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "api-server": {
              "type": "http",
              "url": "${API_BASE_URL:-https://api.example.com}/mcp",
              "headers": {"Authorization": "Bearer ${API_KEY}"}
            }
          }
        }"##,
        &["api-server ${API_BASE_URL:-https://api.example.com}/mcp Authorization:"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "private-api": {
              "type": "sse",
              "url": "https://api.company.com/sse",
              "headers": {"X-API-Key": "your-key-here"}
            },
            "notion": {"type": "http", "url": "https://mcp.notion.com/mcp"}
          }
        }"##,
        &["private-api https://api.company.com/sse X-API-Key:", "notion https://mcp.notion.com/mcp"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "plugin-database": {
              "command": "${CLAUDE_PLUGIN_ROOT}/servers/db-server",
              "args": ["--config", "${CLAUDE_PLUGIN_ROOT}/config.json"],
              "env": {"DB_PATH": "${CLAUDE_PLUGIN_ROOT}/data"}
            },
            "plugin-api-client": {
              "command": "npx",
              "args": ["@company/mcp-server", "--plugin-mode"],
              "cwd": "${CLAUDE_PLUGIN_ROOT}"
            }
          }
        }"##,
        &[
            "plugin-database ${CLAUDE_PLUGIN_ROOT}/servers/db-server --config ${CLAUDE_PLUGIN_ROOT}/config.json DB_PATH=",
            "plugin-api-client npx @company/mcp-server --plugin-mode in ${CLAUDE_PLUGIN_ROOT}",
        ],
        &[],
    ),
    (
        r##"{
          "database-tools": {
            "command": "${CLAUDE_PLUGIN_ROOT}/servers/db-server",
            "args": ["--config", "${CLAUDE_PLUGIN_ROOT}/config.json"],
            "env": {"DB_URL": "${DB_URL}"}
          }
        }"##,
        &["database-tools ${CLAUDE_PLUGIN_ROOT}/servers/db-server --config ${CLAUDE_PLUGIN_ROOT}/config.json DB_URL="],
        &[],
    ),
    (
        r##"{
          "name": "my-plugin",
          "mcpServers": {
            "plugin-api": {"command": "${CLAUDE_PLUGIN_ROOT}/servers/api-server", "args": ["--port", "8080"]}
          }
        }"##,
        &["plugin-api ${CLAUDE_PLUGIN_ROOT}/servers/api-server --port 8080"],
        &["name"],
    ),
    (
        r##"{
          "mcpServers": {
            "my-server": {"type": "stdio", "command": "cmd", "args": ["/c", "npx", "-y", "@some/package"]}
          }
        }"##,
        &["my-server cmd /c npx -y @some/package"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "internal-api": {
              "type": "http",
              "url": "https://mcp.internal.example.com",
              "headersHelper": "/opt/bin/get-mcp-auth-headers.sh"
            }
          }
        }"##,
        &["internal-api https://mcp.internal.example.com"],
        &["mcpServers.internal-api.headersHelper"],
    ),
    (
        r##"{
          "mcpServers": {
            "my-server": {
              "type": "http",
              "url": "https://mcp.example.com/mcp",
              "oauth": {"clientId": "your-client-id", "callbackPort": 8080}
            },
            "events": {"type": "ws", "url": "wss://mcp.example.com/socket", "headers": {"Authorization": "Bearer ${TOKEN}"}}
          }
        }"##,
        &["my-server https://mcp.example.com/mcp", "events wss://mcp.example.com/socket Authorization:"],
        &["mcpServers.my-server.oauth"],
    ),
    (
        r##"{
          "mcpServers": {
            "core-tools": {"type": "http", "url": "https://mcp.example.com/mcp", "alwaysLoad": true, "timeout": 600000}
          }
        }"##,
        &["core-tools https://mcp.example.com/mcp 600s"],
        &["mcpServers.core-tools.alwaysLoad"],
    ),
];
