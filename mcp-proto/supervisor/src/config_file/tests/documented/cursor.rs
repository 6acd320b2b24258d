//! `.cursor/mcp.json` of Cursor: cursor.com/docs/mcp.

pub(super) const FILES: [(&str, &[&str], &[&str]); 9] = [
    (
        r##"{
          "mcpServers": {
            "notes": {
              "command": "npx",
              "args": ["-y", "notes-server"],
              "env": {"NOTES_KEY": "k-123"}
            }
          }
        }"##,
        &["notes npx -y notes-server NOTES_KEY="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "tides": {
              "command": "python",
              "args": ["tides.py"],
              "env": {"TIDES_KEY": "k-123"}
            }
          }
        }"##,
        &["tides python tides.py TIDES_KEY="],
        &[],
    ),
    (
        r##"// A server that runs elsewhere
        {
          "mcpServers": {
            "ledger": {
              "url": "http://localhost:9100/mcp",
              "headers": {"X-Acme-Key": "k-123"}
            },
            "old": {"url": "http://localhost:9200/sse"}
          }
        }"##,
        &["ledger auto http://localhost:9100/mcp X-Acme-Key:", "old auto http://localhost:9200/sse"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "registered": {
              "url": "https://registered.example/mcp",
              "auth": {"CLIENT_ID": "acme-client", "CLIENT_SECRET": "s-123", "scopes": ["list", "change"]}
            }
          }
        }"##,
        &["registered auto https://registered.example/mcp as acme-client"],
        &["mcpServers.registered.auth.CLIENT_SECRET"],
    ),
    (
        r##"{
          "mcpServers": {
            "registered": {
              "url": "https://registered.example/mcp",
              "auth": {"CLIENT_ID": "${env:ACME_CLIENT}", "CLIENT_SECRET": "${env:ACME_SECRET}"}
            }
          }
        }"##,
        &["registered auto https://registered.example/mcp as ${env:ACME_CLIENT}"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "local": {
              "command": "python",
              "args": ["${workspaceFolder}/bin/tides.py"],
              "env": {"TIDES_KEY": "${env:TIDES_KEY}"}
            }
          }
        }"##,
        &["local python ${workspaceFolder}/bin/tides.py TIDES_KEY="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "ledger": {
              "url": "https://${env:ACME_HOST}/mcp",
              "headers": {"Authorization": "Bearer ${env:LEDGER_TOKEN}"}
            }
          }
        }"##,
        &["ledger auto https://${env:ACME_HOST}/mcp Authorization:"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "local": {
              "type": "stdio",
              "command": "${userHome}${/}bin${/}local",
              "args": ["--name", "${workspaceFolderBasename}", "${userHome}${pathSeparator}data"],
              "envFile": "${workspaceFolder}/.env"
            }
          }
        }"##,
        &[
            "local ${userHome}${/}bin${/}local --name ${workspaceFolderBasename} ${userHome}${pathSeparator}data with ${workspaceFolder}/.env",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "container": {
              "type": "stdio",
              "command": "docker",
              "args": ["run", "-i", "--rm", "acme/container", "--port", "9100"],
              "env": {"LEVEL": "debug"},
              "envFile": ".env"
            },
            "remote": {"url": "https://remote.example/mcp"}
          }
        }"##,
        &[
            "container docker run -i --rm acme/container --port 9100 LEVEL= with .env",
            "remote auto https://remote.example/mcp",
        ],
        &[],
    ),
];
