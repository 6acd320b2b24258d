//! `settings.json` of Zed: zed.dev/docs/ai/mcp.

pub(super) const FILES: [(&str, &[&str], &[&str]); 8] = [
    (
        r##"{
          "context_servers": {
            "local-mcp-server": {"command": "some-command", "args": ["arg-1", "arg-2"], "env": {}},
            "remote-mcp-server": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer <token>"}}
          }
        }"##,
        &["local-mcp-server some-command arg-1 arg-2", "remote-mcp-server https://mcp.example.com/mcp Authorization:"],
        &[],
    ),
    (
        r##"{
          "theme": "One Dark",
          "context_servers": {
            "some-context-server": {
              "source": "custom",
              "command": "some-command",
              "args": ["arg-1", "arg-2"],
              "env": {}
            }
          }
        }"##,
        &["some-context-server some-command arg-1 arg-2"],
        &["theme", "context_servers.some-context-server.source"],
    ),
    (
        r##"// Zed settings
        {
          "context_servers": {
            "github": {
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
              "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "$TOKEN"},
            },
          },
        }"##,
        &[
            "github docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server GITHUB_PERSONAL_ACCESS_TOKEN=",
        ],
        &[],
    ),
    (
        r##"{
          "context_servers": {
            "linear": {"url": "https://mcp.linear.app/mcp"},
            "off": {"enabled": false, "command": "npx", "args": ["-y", "off-server"]}
          }
        }"##,
        &["linear https://mcp.linear.app/mcp", "off (off) npx -y off-server"],
        &[],
    ),
    (
        r##"{
          "context_servers": {
            "slow": {"source": "custom", "enabled": true, "command": "slow-server", "args": [], "timeout": 120}
          }
        }"##,
        &["slow slow-server 120s"],
        &["context_servers.slow.source"],
    ),
    (
        r##"{
          "agent": {"always_allow_tool_actions": true},
          "context_servers": {
            "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]}
          },
          "languages": {"Rust": {"tab_size": 4}}
        }"##,
        &["filesystem npx -y @modelcontextprotocol/server-filesystem /tmp"],
        &["agent", "languages"],
    ),
    (
        r##"{
          "context_servers": {
            "api": {
              "url": "https://api.example.com/mcp",
              "headers": {"X-Api-Key": "${NOT_A_VARIABLE}"},
              "timeout": 30
            }
          }
        }"##,
        &["api https://api.example.com/mcp X-Api-Key: 30s"],
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
