//! `.cursor/mcp.json` of Cursor: cursor.com/docs/mcp.

pub(super) const FILES: [(&str, &[&str], &[&str]); 8] = [
    (
        r##"{
          "mcpServers": {
            "server-name": {
              "command": "npx",
              "args": ["-y", "mcp-server"],
              "env": {"API_KEY": "value"}
            }
          }
        }"##,
        &["server-name npx -y mcp-server API_KEY="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "server-name": {
              "command": "python",
              "args": ["mcp-server.py"],
              "env": {"API_KEY": "value"}
            }
          }
        }"##,
        &["server-name python mcp-server.py API_KEY="],
        &[],
    ),
    (
        r##"// MCP server using HTTP or SSE - runs on a server
        {
          "mcpServers": {
            "server-name": {
              "url": "http://localhost:3000/mcp",
              "headers": {"API_KEY": "value"}
            }
          }
        }"##,
        &["server-name http://localhost:3000/mcp API_KEY:"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "oauth-server": {
              "url": "https://api.example.com/mcp",
              "auth": {"CLIENT_ID": "your-oauth-client-id", "CLIENT_SECRET": "your-client-secret", "scopes": ["read", "write"]}
            }
          }
        }"##,
        &["oauth-server https://api.example.com/mcp"],
        &["mcpServers.oauth-server.auth"],
    ),
    (
        r##"{
          "mcpServers": {
            "local-server": {
              "command": "python",
              "args": ["${workspaceFolder}/tools/mcp_server.py"],
              "env": {"API_KEY": "${env:API_KEY}"}
            },
            "remote-server": {
              "url": "https://api.example.com/mcp",
              "headers": {"Authorization": "Bearer ${env:MY_SERVICE_TOKEN}"}
            }
          }
        }"##,
        &[
            "local-server python ${workspaceFolder}/tools/mcp_server.py API_KEY=",
            "remote-server https://api.example.com/mcp Authorization:",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "tools": {
              "type": "stdio",
              "command": "node",
              "args": ["${userHome}/mcp${/}server.js", "--name", "${workspaceFolderBasename}", "a${pathSeparator}b"],
              "envFile": "${workspaceFolder}/.env"
            }
          }
        }"##,
        &[
            "tools node ${userHome}/mcp${/}server.js --name ${workspaceFolderBasename} a${pathSeparator}b with ${workspaceFolder}/.env",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "linear": {"url": "https://mcp.linear.app/mcp"},
            "figma": {"url": "https://mcp.figma.com/mcp", "headers": {}}
          }
        }"##,
        &["linear https://mcp.linear.app/mcp", "figma https://mcp.figma.com/mcp"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "postgres": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-postgres", "postgresql://localhost/db"],
              "disabled": true
            },
            "Playwright MCP": {"command": "npx @playwright/mcp@latest", "env": {}, "args": []}
          }
        }"##,
        &[
            "postgres (off) npx -y @modelcontextprotocol/server-postgres postgresql://localhost/db",
            "Playwright MCP npx @playwright/mcp@latest",
        ],
        &[],
    ),
];
