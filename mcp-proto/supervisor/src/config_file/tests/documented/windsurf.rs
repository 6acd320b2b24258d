//! `mcp_config.json` of Windsurf: docs.windsurf.com/windsurf/cascade/mcp. `disabled` and
//! `disabledTools` are of files that are in use: that page does not name them.

pub(super) const FILES: [(&str, &[&str], &[&str]); 9] = [
    (
        r##"{
          "mcpServers": {
            "repos": {
              "command": "npx",
              "args": ["-y", "@acme/repos-server"],
              "env": {"REPOS_TOKEN": "<TOKEN>"}
            }
          }
        }"##,
        &["repos npx -y @acme/repos-server REPOS_TOKEN="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "ledger": {
              "serverUrl": "https://ledger.example/mcp",
              "headers": {"X-Acme-Key": "k-123"}
            }
          }
        }"##,
        &["ledger auto https://ledger.example/mcp X-Acme-Key:"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "ledger": {"url": "https://ledger.example/mcp"},
            "old": {"serverUrl": "http://127.0.0.1:9200/sse"}
          }
        }"##,
        &["ledger auto https://ledger.example/mcp", "old auto http://127.0.0.1:9200/sse"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "ledger": {
              "serverUrl": "https://ledger.example/mcp",
              "headers": {"Authorization": "Bearer ${env:LEDGER_TOKEN}"}
            }
          }
        }"##,
        &["ledger auto https://ledger.example/mcp Authorization:"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "search": {"serverUrl": "https://search.example/mcp?key=${env:SEARCH_KEY}"},
            "other": {"url": "https://${env:OTHER_HOST}/mcp", "headers": {}}
          }
        }"##,
        &["search auto https://search.example/mcp?key=${env:SEARCH_KEY}", "other auto https://${env:OTHER_HOST}/mcp"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "local": {
              "command": "${env:ACME_HOME}/bin/local",
              "args": ["--region", "${env:ACME_REGION}"],
              "env": {"ACME_KEY": "${env:ACME_KEY}"}
            }
          }
        }"##,
        &["local ${env:ACME_HOME}/bin/local --region ${env:ACME_REGION} ACME_KEY="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "secret": {
              "command": "npx",
              "args": ["-y", "@acme/secret", "--key", "${file:/home/ann/.keys/acme}"],
              "env": {"ACME_TOKEN": "${file:~/.keys/token}"}
            }
          }
        }"##,
        &["secret npx -y @acme/secret --key ${file:/home/ann/.keys/acme} ACME_TOKEN="],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "browser": {
              "command": "npx",
              "args": ["-y", "@acme/browser"],
              "disabled": true,
              "disabledTools": ["run_script"]
            },
            "maps": {"command": "npx", "args": ["-y", "@acme/maps"], "env": {"MAPS_KEY": "k-123"}, "disabled": false}
          }
        }"##,
        &["browser (off) npx -y @acme/browser", "maps npx -y @acme/maps MAPS_KEY="],
        &["mcpServers.browser.disabledTools"],
    ),
    (
        r##"{
          "mcpServers": {
            "container": {
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "ACME_TOKEN", "acme/container"],
              "env": {"ACME_TOKEN": "${env:ACME_TOKEN}"}
            },
            "memory": {"command": "npx", "args": ["-y", "@acme/memory"]}
          }
        }"##,
        &["container docker run -i --rm -e ACME_TOKEN acme/container ACME_TOKEN=", "memory npx -y @acme/memory"],
        &[],
    ),
];
