//! `claude_desktop_config.json` of Claude Desktop: docs/docs/develop/connect-local-servers.mdx,
//! docs/docs/develop/build-server.mdx and docs/legacy/tools/debugging.mdx of the specification,
//! code.claude.com/docs/en/mcp, and the README of `mcp-remote`.

pub(super) const FILES: [(&str, &[&str], &[&str]); 9] = [
    (
        r##"{
          "mcpServers": {
            "notes": {
              "command": "npx",
              "args": [
                "-y",
                "@acme/notes-server",
                "/Users/ann/Notes",
                "/Users/ann/Mail"
              ]
            }
          }
        }"##,
        &["notes npx -y @acme/notes-server /Users/ann/Notes /Users/ann/Mail"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "notes": {
              "command": "npx",
              "args": ["-y", "@acme/notes-server", "C:\\Users\\ann\\Notes"]
            }
          }
        }"##,
        &["notes npx -y @acme/notes-server C:\\Users\\ann\\Notes"],
        &[],
    ),
    // The page about faults shows servers without the list around them.
    (
        r##"{
          "web-search": {
            "command": "npx",
            "args": ["-y", "@acme/search-server"],
            "env": {
              "APPDATA": "C:\\Users\\ann\\AppData\\Roaming\\",
              "SEARCH_KEY": "k-123"
            }
          }
        }"##,
        &["web-search npx -y @acme/search-server APPDATA= SEARCH_KEY="],
        &[],
    ),
    (
        r##"{
          "ledger": {
            "command": "acme-ledger",
            "env": {"LEDGER_KEY": "k-123"}
          }
        }"##,
        &["ledger acme-ledger LEDGER_KEY="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "tides": {
              "command": "uv",
              "args": ["--directory", "/opt/tides", "run", "tides.py"]
            }
          }
        }"##,
        &["tides uv --directory /opt/tides run tides.py"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "tides": {"command": "node", "args": ["/opt/tides/build/main.js"]},
            "tides-java": {"command": "java", "args": ["-Dtides.stdio=true", "-jar", "/opt/tides/tides.jar"]}
          }
        }"##,
        &["tides node /opt/tides/build/main.js", "tides-java java -Dtides.stdio=true -jar /opt/tides/tides.jar"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "agent": {
              "type": "stdio",
              "command": "/usr/local/bin/agent",
              "args": ["mcp", "serve"],
              "env": {}
            }
          }
        }"##,
        &["agent /usr/local/bin/agent mcp serve"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "bridge": {
              "command": "npx",
              "args": ["-y", "mcp-remote", "https://mcp.example/sse", "--header", "Authorization:${BRIDGE_HEADER}"],
              "env": {"BRIDGE_HEADER": "Bearer k-123"}
            },
          }
        }"##,
        &["bridge npx -y mcp-remote https://mcp.example/sse --header Authorization:${BRIDGE_HEADER} BRIDGE_HEADER="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "one": {"command": "npx", "args": ["mcp-remote", "https://mcp.example/sse", "9321", "--allow-http"]},
            "two": {
              "command": "npx",
              "args": ["mcp-remote@latest", "https://mcp.example/sse", "--transport", "http-only", "--enable-proxy"],
              "env": {"HTTPS_PROXY": "http://127.0.0.1:8888", "NODE_EXTRA_CA_CERTS": "/etc/ssl/acme.pem"}
            }
          }
        }"##,
        &[
            "one npx mcp-remote https://mcp.example/sse 9321 --allow-http",
            "two npx mcp-remote@latest https://mcp.example/sse --transport http-only --enable-proxy HTTPS_PROXY= NODE_EXTRA_CA_CERTS=",
        ],
        &[],
    ),
];
