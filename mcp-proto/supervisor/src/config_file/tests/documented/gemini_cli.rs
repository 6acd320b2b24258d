//! `settings.json` and `gemini-extension.json` of Gemini CLI: docs/tools/mcp-server.md,
//! docs/reference/configuration.md, docs/extensions/reference.md and schemas/settings.schema.json.

pub(super) const FILES: [(&str, &[&str], &[&str]); 13] = [
    (
        r##"{
          "mcpServers": {
            "tides": {
              "command": "python",
              "args": ["-m", "tides", "--port", "9100"],
              "cwd": "./servers/tides",
              "env": {"TIDES_DB": "$TIDES_DB", "TIDES_KEY": "${ACME_KEY}"},
              "timeout": 12000
            }
          }
        }"##,
        &["tides python -m tides --port 9100 TIDES_DB= TIDES_KEY= in ./servers/tides 12s"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "notes": {"command": "node", "args": ["build/notes.js"], "cwd": "./servers/notes", "trust": true}
          }
        }"##,
        &["notes node build/notes.js in ./servers/notes"],
        &["mcpServers.notes.trust"],
    ),
    (
        r##"{
          "mcpServers": {
            "container": {
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "ACME_KEY", "-v", "${PWD}:/data", "acme/container:1"],
              "env": {"ACME_KEY": "$ACME_KEY"}
            }
          }
        }"##,
        &["container docker run -i --rm -e ACME_KEY -v ${PWD}:/data acme/container:1 ACME_KEY="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "ledger": {"httpUrl": "http://localhost:9100/mcp", "timeout": 4000}
          }
        }"##,
        &["ledger streamable http://localhost:9100/mcp 4s"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "ledger": {
              "httpUrl": "https://ledger.example/mcp",
              "headers": {
                "Authorization": "Bearer $LEDGER_TOKEN",
                "X-Acme": "ann",
                "Content-Type": "application/json"
              },
              "timeout": 4000
            }
          }
        }"##,
        &["ledger streamable https://ledger.example/mcp Authorization: X-Acme: 4s"],
        &["mcpServers.ledger.headers.Content-Type"],
    ),
    (
        r##"{
          "mcpServers": {
            "files": {
              "command": "python",
              "args": ["-m", "files"],
              "description": "Files of the project",
              "includeTools": ["read", "list"],
              // "excludeTools": ["remove"],
              "timeout": 20000
            },
            "others": {"command": "others", "excludeTools": ["remove"]}
          }
        }"##,
        &["files python -m files 20s", "others others"],
        &["mcpServers.files.description", "mcpServers.files.includeTools", "mcpServers.others.excludeTools"],
    ),
    (
        r##"{
          "mcpServers": {
            "protected": {
              "url": "https://protected.example/sse",
              "authProviderType": "service_account_impersonation",
              "targetAudience": "acme.apps.example",
              "targetServiceAccount": "robot@acme.example"
            }
          }
        }"##,
        &["protected auto https://protected.example/sse"],
        &[
            "mcpServers.protected.authProviderType",
            "mcpServers.protected.targetAudience",
            "mcpServers.protected.targetServiceAccount",
        ],
    ),
    (
        r##"{
          "mcpServers": {
            "cloud": {
              "httpUrl": "https://cloud.example/mcp",
              "authProviderType": "google_credentials",
              "oauth": {"scopes": ["https://scopes.example/email"]}
            },
            "registered": {
              "url": "https://registered.example/sse",
              "oauth": {"enabled": true, "clientId": "acme", "clientSecret": "$ACME_SECRET", "redirectUri": "http://localhost:9555/cb"}
            }
          }
        }"##,
        &["cloud streamable https://cloud.example/mcp", "registered auto https://registered.example/sse as acme"],
        &["mcpServers.cloud.authProviderType"],
    ),
    (
        r##"{
          "ui": {"theme": "Dark"},
          "mcp": {"serverCommand": "acme-all", "allowed": ["ledger"], "excluded": ["trial"]},
          "mcpServers": {
            "ledger": {"url": "https://ledger.example/sse"}
          }
        }"##,
        &["ledger auto https://ledger.example/sse"],
        &["ui", "mcp"],
    ),
    (
        r##"{
          "mcpServers": {
            "ledger": {"type": "http", "url": "https://ledger.example/mcp"},
            "old": {"type": "sse", "url": "https://old.example/sse"},
            "local": {"type": "stdio", "command": "local"}
          }
        }"##,
        &["ledger streamable https://ledger.example/mcp", "old auto https://old.example/sse", "local local"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "local": {
              "command": "${ACME_HOME:-/opt/acme}/bin/local",
              "env": {"LEVEL": "${LEVEL:-info}", "TEMP_DIR": "%TEMP%", "PRICE": "5$"}
            }
          }
        }"##,
        &["local ${ACME_HOME:-/opt/acme}/bin/local LEVEL= TEMP_DIR= PRICE="],
        &[],
    ),
    // An extension.
    (
        r##"{
          "name": "acme-extension",
          "version": "1.2.0",
          "mcpServers": {
            "local": {
              "command": "node",
              "args": ["${extensionPath}${/}local.js", "--root", "${workspacePath}"],
              "cwd": "${extensionPath}"
            }
          },
          "contextFileName": "ACME.md"
        }"##,
        &["local node ${extensionPath}${/}local.js --root ${workspacePath} in ${extensionPath}"],
        &["name", "version", "contextFileName"],
    ),
    // The client takes the first of `httpUrl`, `url` and `command`.
    (
        r##"{
          "mcpServers": {
            "both": {"httpUrl": "https://both.example/mcp", "url": "https://both.example/sse"}
          }
        }"##,
        &["both! `url` and `httpUrl` exclude each other: remove one"],
        &[],
    ),
];
