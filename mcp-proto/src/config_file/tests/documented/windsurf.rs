//! `mcp_config.json` of Windsurf: docs.windsurf.com/windsurf/cascade/mcp.

pub(super) const FILES: [(&str, &[&str], &[&str]); 8] = [
    (
        r##"{
          "mcpServers": {
            "github": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-github"],
              "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "<YOUR_PERSONAL_ACCESS_TOKEN>"}
            }
          }
        }"##,
        &["github npx -y @modelcontextprotocol/server-github GITHUB_PERSONAL_ACCESS_TOKEN="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "remote-http-mcp": {
              "serverUrl": "https://your-server-url/mcp",
              "headers": {"API_KEY": "value"}
            }
          }
        }"##,
        &["remote-http-mcp https://your-server-url/mcp API_KEY:"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "remote-http-mcp": {
              "serverUrl": "https://your-server-url/mcp",
              "headers": {"API_KEY": "Bearer ${env:AUTH_TOKEN}"}
            }
          }
        }"##,
        &["remote-http-mcp https://your-server-url/mcp API_KEY:"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "secret-server": {
              "command": "npx",
              "args": ["-y", "server", "--key", "${file:/home/me/.keys/api}"],
              "env": {"TOKEN": "${file:~/.secrets/token.txt}"}
            }
          }
        }"##,
        &["secret-server npx -y server --key ${file:/home/me/.keys/api} TOKEN="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "google-maps": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-google-maps"],
              "env": {"GOOGLE_MAPS_API_KEY": "<YOUR_API_KEY>"},
              "disabled": false,
              "alwaysAllow": []
            }
          }
        }"##,
        &["google-maps npx -y @modelcontextprotocol/server-google-maps GOOGLE_MAPS_API_KEY="],
        &["mcpServers.google-maps.alwaysAllow"],
    ),
    (
        r##"{
          "mcpServers": {
            "puppeteer": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-puppeteer"],
              "disabled": true,
              "disabledTools": ["puppeteer_evaluate"]
            }
          }
        }"##,
        &["puppeteer (off) npx -y @modelcontextprotocol/server-puppeteer"],
        &["mcpServers.puppeteer.disabledTools"],
    ),
    (
        r##"{
          "mcpServers": {
            "figma": {"serverUrl": "http://127.0.0.1:3845/sse"},
            "exa": {"serverUrl": "https://mcp.exa.ai/mcp?exaApiKey=${env:EXA_API_KEY}"}
          }
        }"##,
        &["figma http://127.0.0.1:3845/sse", "exa https://mcp.exa.ai/mcp?exaApiKey=${env:EXA_API_KEY}"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "github": {
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
              "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${env:GITHUB_TOKEN}"}
            },
            "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}
          }
        }"##,
        &[
            "github docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server GITHUB_PERSONAL_ACCESS_TOKEN=",
            "memory npx -y @modelcontextprotocol/server-memory",
        ],
        &[],
    ),
];
