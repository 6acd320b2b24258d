//! `.vscode/mcp.json` and the settings of VS Code: docs/agents/reference/mcp-configuration.md,
//! docs/reference/variables-reference.md, and of 2025 docs/copilot/chat/mcp-servers.md.

pub(super) const FILES: [(&str, &[&str], &[&str]); 12] = [
    (
        r##"{
          "servers": {
            "ledger": {"type": "http", "url": "https://ledger.example/mcp"},
            "notes": {"command": "npx", "args": ["-y", "@acme/notes"]}
          }
        }"##,
        &["ledger auto https://ledger.example/mcp", "notes npx -y @acme/notes"],
        &[],
    ),
    (
        r##"{
          "inputs": [
            {
              "type": "promptString",
              "id": "search-key",
              "description": "Key of the search",
              "password": true
            },
          ],
          "servers": {
            // https://search.example/
            "search": {
              "type": "stdio",
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "SEARCH_KEY", "acme/search"],
              "env": {"SEARCH_KEY": "${input:search-key}"}
            }
          }
        }"##,
        &["search docker run -i --rm -e SEARCH_KEY acme/search SEARCH_KEY="],
        &[],
    ),
    (
        r##"{
          "inputs": [
            {"type": "promptString", "id": "host", "description": "Host", "default": "ledger.example"},
            {"type": "pickString", "id": "stage", "description": "Stage", "options": ["trial", "live"], "default": "trial"},
            {"type": "pickString", "id": "zone", "description": "Zone", "options": [{"label": "North", "value": "n"}]},
            {"type": "command", "id": "token", "command": "acme.token", "args": {"scope": "all"}}
          ],
          "servers": {
            "ledger": {
              "type": "http",
              "url": "https://${input:host}/${input:stage}/mcp",
              "headers": {"Authorization": "Bearer ${input:token}", "X-Zone": "${input:zone}"}
            }
          }
        }"##,
        &["ledger auto https://${input:host}/${input:stage}/mcp Authorization: X-Zone:"],
        &["inputs[3].args"],
    ),
    (
        r##"{
          "servers": {
            "fetch": {"type": "stdio", "command": "uvx", "args": ["acme-fetch"]},
            "old": {
              "type": "sse",
              "url": "http://old.example/sse",
              "headers": {"X-Version": "3.1"}
            }
          }
        }"##,
        &["fetch uvx acme-fetch", "old auto http://old.example/sse X-Version:"],
        &[],
    ),
    (
        r##"{
          "servers": {
            "memory": {
              "type": "stdio",
              "command": "npx",
              "args": ["-y", "@acme/memory"],
              "cwd": "${workspaceFolder}",
              "envFile": "${workspaceFolder}/.env",
              "env": {"MEMORY_FILE": "${userHome}/memory.json", "PORT": 9100, "DEBUG": null}
            }
          }
        }"##,
        &["memory npx -y @acme/memory MEMORY_FILE= PORT= DEBUG= in ${workspaceFolder} with ${workspaceFolder}/.env"],
        &[],
    ),
    (
        r##"{
          "servers": {
            "node": {
              "type": "stdio",
              "command": "node",
              "args": ["${workspaceFolder}/out/main.js"],
              "dev": {"watch": "src/**/*.ts", "debug": {"type": "node"}}
            },
            "python": {
              "command": "python",
              "args": ["main.py"],
              "dev": {"watch": ["*.py", "acme/*.py"], "debug": {"type": "debugpy", "debugpyPath": "/usr/bin/debugpy"}}
            },
            "remote": {"type": "http", "url": "http://localhost:9100", "dev": {"watch": "src/**"}}
          }
        }"##,
        &["node node ${workspaceFolder}/out/main.js", "python python main.py", "remote auto http://localhost:9100"],
        &["servers.node.dev", "servers.python.dev", "servers.remote.dev"],
    ),
    (
        r##"{
          "servers": {
            "boxed": {"type": "stdio", "command": "npx", "args": ["-y", "@acme/boxed"], "sandboxEnabled": true}
          },
          "sandbox": {
            "filesystem": {"allowWrite": ["${workspaceFolder}"], "denyRead": ["${userHome}/.keys"]},
            "network": {"allowedDomains": ["*.acme.example"]}
          }
        }"##,
        &["boxed npx -y @acme/boxed"],
        &["servers.boxed.sandboxEnabled", "sandbox"],
    ),
    // The documentation of May 2026 has the rules in the server.
    (
        r##"{
          "servers": {
            "boxed": {
              "type": "stdio",
              "command": "npx",
              "args": ["-y", "@acme/boxed"],
              "sandboxEnabled": true,
              "sandbox": {"filesystem": {"denyWrite": ["/etc"]}, "network": {"deniedDomains": ["bad.example"]}}
            }
          }
        }"##,
        &["boxed npx -y @acme/boxed"],
        &["servers.boxed.sandboxEnabled", "servers.boxed.sandbox"],
    ),
    (
        r##"{
          "servers": {
            "registered": {
              "type": "http",
              "url": "https://registered.example/mcp",
              "oauth": {"clientId": "acme-client", "enterpriseManaged": true}
            },
            "gallery": {"type": "http", "url": "https://gallery.example/", "gallery": true, "version": "1.0.0"}
          },
          "inputs": []
        }"##,
        &["registered auto https://registered.example/mcp as acme-client", "gallery auto https://gallery.example/"],
        &["servers.registered.oauth.enterpriseManaged", "servers.gallery.gallery", "servers.gallery.version"],
    ),
    (
        r##"{
          "servers": {
            "socket": {"type": "http", "url": "unix:///run/acme.sock#/mcp"},
            "pipe": {"type": "http", "url": "pipe:///pipe/acme"}
          }
        }"##,
        &[
            "socket! the URL cannot be used: not an absolute http:, https:, ws: or wss: URL without a user",
            "pipe! the URL cannot be used: not an absolute http:, https:, ws: or wss: URL without a user",
        ],
        &[],
    ),
    (
        r##"{
          "servers": {
            "local": {
              "type": "stdio",
              "command": "${execPath}",
              "args": ["${workspaceFolder:Server}", "${fileDirname}", "${env:ACME_HOME}", "${config:acme.level}"],
              "env": {"ACME_TOKEN": "${command:acme.token}"}
            }
          }
        }"##,
        &[
            "local ${execPath} ${workspaceFolder:Server} ${fileDirname} ${env:ACME_HOME} ${config:acme.level} ACME_TOKEN=",
        ],
        &[],
    ),
    (
        r##"{
          // settings.json of 2025
          "editor.tabSize": 4,
          "mcp": {
            "inputs": [],
            "servers": {
              "local": {"type": "stdio", "command": "acme-local", "args": []}
            }
          },
        }"##,
        &["local acme-local"],
        &["[\"editor.tabSize\"]"],
    ),
];
