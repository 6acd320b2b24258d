//! `settings.json` of Gemini CLI: docs/tools/mcp-server.md and docs/reference/configuration.md.

pub(super) const FILES: [(&str, &[&str], &[&str]); 9] = [
    (
        r##"{
          "mcpServers": {
            "pythonTools": {
              "command": "python",
              "args": ["-m", "my_mcp_server", "--port", "8080"],
              "cwd": "./mcp-servers/python",
              "env": {"DATABASE_URL": "$DB_CONNECTION_STRING", "API_KEY": "${EXTERNAL_API_KEY}"},
              "timeout": 15000
            }
          }
        }"##,
        &["pythonTools python -m my_mcp_server --port 8080 DATABASE_URL= API_KEY= in ./mcp-servers/python 15s"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "nodeServer": {
              "command": "node",
              "args": ["dist/server.js", "--verbose"],
              "cwd": "./mcp-servers/node",
              "trust": true
            }
          }
        }"##,
        &["nodeServer node dist/server.js --verbose in ./mcp-servers/node"],
        &["mcpServers.nodeServer.trust"],
    ),
    (
        r##"{
          "mcpServers": {
            "dockerizedServer": {
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "API_KEY", "-v", "${PWD}:/workspace", "my-mcp-server:latest"],
              "env": {"API_KEY": "$EXTERNAL_SERVICE_TOKEN"}
            }
          }
        }"##,
        &["dockerizedServer docker run -i --rm -e API_KEY -v ${PWD}:/workspace my-mcp-server:latest API_KEY="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "httpServer": {"httpUrl": "http://localhost:3000/mcp", "timeout": 5000}
          }
        }"##,
        &["httpServer http://localhost:3000/mcp 5s"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "httpServerWithAuth": {
              "httpUrl": "http://localhost:3000/mcp",
              "headers": {
                "Authorization": "Bearer your-api-token",
                "X-Custom-Header": "custom-value",
                "Content-Type": "application/json"
              },
              "timeout": 5000
            }
          }
        }"##,
        &["httpServerWithAuth http://localhost:3000/mcp Authorization: X-Custom-Header: 5s"],
        &["mcpServers.httpServerWithAuth.headers.Content-Type"],
    ),
    (
        r##"{
          "mcpServers": {
            "filteredServer": {
              "command": "python",
              "args": ["-m", "my_mcp_server"],
              "includeTools": ["safe_tool", "file_reader", "data_processor"],
              "excludeTools": ["dangerous_tool", "file_deleter"],
              "timeout": 30000
            }
          }
        }"##,
        &["filteredServer python -m my_mcp_server 30s"],
        &["mcpServers.filteredServer.includeTools", "mcpServers.filteredServer.excludeTools"],
    ),
    (
        r##"{
          "mcpServers": {
            "myCloudRunServer": {
              "url": "https://my-gcp-service.run.app/sse",
              "authProviderType": "service_account_impersonation",
              "targetAudience": "YOUR_CLIENT_ID.apps.googleusercontent.com",
              "targetServiceAccount": "sa@project.iam.gserviceaccount.com"
            }
          }
        }"##,
        &["myCloudRunServer https://my-gcp-service.run.app/sse"],
        &[
            "mcpServers.myCloudRunServer.authProviderType",
            "mcpServers.myCloudRunServer.targetAudience",
            "mcpServers.myCloudRunServer.targetServiceAccount",
        ],
    ),
    (
        r##"{
          "theme": "GitHub",
          "mcp": {"allowed": ["discoveredServer"], "excluded": ["experimental-server"]},
          "mcpServers": {
            "discoveredServer": {"url": "https://api.example.com/sse"}
          }
        }"##,
        &["discoveredServer https://api.example.com/sse"],
        &["theme", "mcp"],
    ),
    (
        r##"{
          "mcpServers": {
            "withDefault": {"command": "node", "args": ["server.js"], "env": {"LOG": "${LOG_LEVEL:-info}", "PRICE": "5$"}}
          }
        }"##,
        &["withDefault node server.js LOG= PRICE="],
        &[],
    ),
];
