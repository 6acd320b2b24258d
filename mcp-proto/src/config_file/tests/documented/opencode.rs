//! `opencode.json` of opencode: opencode.ai/docs/mcp-servers.

pub(super) const FILES: [(&str, &[&str], &[&str]); 8] = [
    (
        r##"{
          "$schema": "https://opencode.ai/config.json",
          "mcp": {
            "my-local-mcp-server": {
              "type": "local",
              "command": ["npx", "-y", "my-mcp-command"],
              "enabled": true,
              "environment": {"MY_ENV_VAR": "my_env_var_value"},
            },
          },
        }"##,
        &["my-local-mcp-server npx -y my-mcp-command MY_ENV_VAR="],
        &["$schema"],
    ),
    (
        r##"{
          "$schema": "https://opencode.ai/config.json",
          "mcp": {
            "my-remote-mcp": {
              "type": "remote",
              "url": "https://my-mcp-server.com",
              "enabled": true,
              "headers": {"Authorization": "Bearer MY_API_KEY"}
            }
          }
        }"##,
        &["my-remote-mcp https://my-mcp-server.com Authorization:"],
        &["$schema"],
    ),
    (
        r##"{
          "mcp": {
            "mcp_everything": {"type": "local", "command": ["npx", "-y", "@modelcontextprotocol/server-everything"]},
          },
        }"##,
        &["mcp_everything npx -y @modelcontextprotocol/server-everything"],
        &[],
    ),
    (
        r##"{
          "mcp": {
            "sentry": {"type": "remote", "url": "https://mcp.sentry.dev/mcp", "oauth": {}}
          }
        }"##,
        &["sentry https://mcp.sentry.dev/mcp"],
        &["mcp.sentry.oauth"],
    ),
    (
        r##"{
          "mcp": {
            "my-oauth-server": {
              "type": "remote",
              "url": "https://mcp.example.com/mcp",
              "oauth": {"clientId": "{env:MY_MCP_CLIENT_ID}", "clientSecret": "{env:MY_MCP_CLIENT_SECRET}", "scope": "tools:read"}
            }
          }
        }"##,
        &["my-oauth-server https://mcp.example.com/mcp"],
        &["mcp.my-oauth-server.oauth"],
    ),
    (
        r##"{
          "mcp": {
            "my-api-key-server": {
              "type": "remote",
              "url": "https://mcp.example.com/mcp",
              "oauth": false,
              "headers": {"Authorization": "Bearer {env:MY_API_KEY}"}
            },
            "context7": {
              "type": "remote",
              "url": "https://mcp.context7.com/mcp",
              "headers": {"CONTEXT7_API_KEY": "{file:~/.secrets/context7}"}
            }
          }
        }"##,
        &[
            "my-api-key-server https://mcp.example.com/mcp Authorization:",
            "context7 https://mcp.context7.com/mcp CONTEXT7_API_KEY:",
        ],
        &["mcp.my-api-key-server.oauth"],
    ),
    (
        r##"{
          "mcp": {
            "my-mcp-foo": {"type": "local", "command": ["bun", "x", "my-mcp-command-foo"], "timeout": 10000},
            "my-mcp-bar": {"type": "local", "command": ["bun", "x", "my-mcp-command-bar"], "enabled": false}
          },
          "tools": {"my-mcp-foo": false}
        }"##,
        &["my-mcp-foo bun x my-mcp-command-foo 10s", "my-mcp-bar (off) bun x my-mcp-command-bar"],
        &["tools"],
    ),
    (
        r##"{
          "model": "anthropic/claude-sonnet-4-5",
          "mcp": {
            "gh_grep": {"type": "remote", "url": "https://mcp.grep.app"},
            "jira": {"type": "remote", "url": "https://jira.example.com/mcp", "enabled": false}
          },
          "agent": {"my-agent": {"tools": {"jira*": true}}}
        }"##,
        &["gh_grep https://mcp.grep.app", "jira (off) https://jira.example.com/mcp"],
        &["model", "agent"],
    ),
];
