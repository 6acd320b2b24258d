//! `.vscode/mcp.json` and the settings of VS Code: docs/copilot/reference/mcp-configuration.md and
//! docs/copilot/chat/mcp-servers.md.

pub(super) const FILES: [(&str, &[&str], &[&str]); 8] = [
    (
        r##"{
          "servers": {
            "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp"},
            "playwright": {"command": "npx", "args": ["-y", "@microsoft/mcp-server-playwright"]}
          }
        }"##,
        &["github https://api.githubcopilot.com/mcp", "playwright npx -y @microsoft/mcp-server-playwright"],
        &[],
    ),
    (
        r##"{
          "inputs": [
            {
              "type": "promptString",
              "id": "perplexity-key",
              "description": "Perplexity API Key",
              "password": true
            }
          ],
          "servers": {
            // https://github.com/ppl-ai/modelcontextprotocol/
            "Perplexity": {
              "type": "stdio",
              "command": "npx",
              "args": ["-y", "server-perplexity-ask"],
              "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"}
            }
          }
        }"##,
        &["Perplexity npx -y server-perplexity-ask PERPLEXITY_API_KEY="],
        &[],
    ),
    (
        r##"{
          "servers": {
            "fetch": {"type": "stdio", "command": "uvx", "args": ["mcp-server-fetch"]},
            "my-remote-server": {
              "type": "sse",
              "url": "http://api.contoso.com/sse",
              "headers": {"VERSION": "1.2"}
            }
          }
        }"##,
        &["fetch uvx mcp-server-fetch", "my-remote-server http://api.contoso.com/sse VERSION:"],
        &[],
    ),
    (
        r##"{
          "servers": {
            "gistpad": {
              "type": "stdio",
              "command": "node",
              "args": ["${workspaceFolder}/build/index.js"],
              "cwd": "${workspaceFolder}",
              "dev": {"watch": "build/**/*.js", "debug": {"type": "node"}}
            }
          }
        }"##,
        &["gistpad node ${workspaceFolder}/build/index.js in ${workspaceFolder}"],
        &["servers.gistpad.dev"],
    ),
    (
        r##"{
          "servers": {
            "memory": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-memory"],
              "envFile": "${workspaceFolder}/.env",
              "env": {"MEMORY_FILE_PATH": "${userHome}/memory.json", "DEBUG": null, "PORT": 3000}
            }
          }
        }"##,
        &[
            "memory npx -y @modelcontextprotocol/server-memory MEMORY_FILE_PATH= DEBUG= PORT= with ${workspaceFolder}/.env",
        ],
        &[],
    ),
    (
        r##"{
          "inputs": [
            {"type": "promptString", "id": "api-key", "description": "API Key", "password": true},
            {"type": "pickString", "id": "region", "description": "Region", "options": ["eu", "us"], "default": "eu"}
          ],
          "servers": {
            "api": {
              "type": "http",
              "url": "https://${input:region}.contoso.com/mcp",
              "headers": {"Authorization": "Bearer ${input:api-key}"}
            }
          }
        }"##,
        &["api https://${input:region}.contoso.com/mcp Authorization:"],
        &[],
    ),
    (
        r##"{
          // Old settings.json
          "editor.fontSize": 12,
          "mcp": {
            "inputs": [],
            "servers": {
              "my-mcp-server": {"type": "stdio", "command": "my-command", "args": []}
            }
          }
        }"##,
        &["my-mcp-server my-command"],
        &["[\"editor.fontSize\"]"],
    ),
    (
        r##"{
          "servers": {
            "sandboxed": {
              "type": "stdio",
              "command": "npx",
              "args": ["-y", "@example/server"],
              "sandboxEnabled": true,
              "sandbox": {"filesystem": {"allowWrite": ["${workspaceFolder}"]}}
            },
            "gallery": {"type": "http", "url": "https://mcp.example.com/", "gallery": true, "version": "1.0.0"}
          },
          "inputs": []
        }"##,
        &["sandboxed npx -y @example/server", "gallery https://mcp.example.com/"],
        &[
            "servers.sandboxed.sandboxEnabled",
            "servers.sandboxed.sandbox",
            "servers.gallery.gallery",
            "servers.gallery.version",
        ],
    ),
];
