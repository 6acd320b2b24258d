//! `claude_desktop_config.json` of Claude Desktop:
//! modelcontextprotocol.io/docs/develop/connect-local-servers, and the servers' own instructions.

pub(super) const FILES: [(&str, &[&str], &[&str]); 9] = [
    (
        r##"{
          "mcpServers": {
            "filesystem": {
              "command": "npx",
              "args": [
                "-y",
                "@modelcontextprotocol/server-filesystem",
                "/Users/username/Desktop",
                "/Users/username/Downloads"
              ]
            }
          }
        }"##,
        &[
            "filesystem npx -y @modelcontextprotocol/server-filesystem /Users/username/Desktop /Users/username/Downloads",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "filesystem": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-filesystem", "C:\\Users\\username\\Desktop"]
            },
            "brave-search": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-brave-search"],
              "env": {"APPDATA": "C:\\Users\\user\\AppData\\Roaming\\", "BRAVE_API_KEY": "..."}
            }
          }
        }"##,
        &[
            "filesystem npx -y @modelcontextprotocol/server-filesystem C:\\Users\\username\\Desktop",
            "brave-search npx -y @modelcontextprotocol/server-brave-search APPDATA= BRAVE_API_KEY=",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "weather": {
              "command": "uv",
              "args": ["--directory", "/ABSOLUTE/PATH/TO/PARENT/FOLDER/weather", "run", "weather.py"]
            }
          }
        }"##,
        &["weather uv --directory /ABSOLUTE/PATH/TO/PARENT/FOLDER/weather run weather.py"],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "weather": {"command": "node", "args": ["/ABSOLUTE/PATH/TO/weather/build/index.js"]},
            "spring-ai-mcp-weather": {
              "command": "java",
              "args": ["-Dspring.ai.mcp.server.stdio=true", "-jar", "/ABSOLUTE/PATH/TO/weather.jar"]
            }
          }
        }"##,
        &[
            "weather node /ABSOLUTE/PATH/TO/weather/build/index.js",
            "spring-ai-mcp-weather java -Dspring.ai.mcp.server.stdio=true -jar /ABSOLUTE/PATH/TO/weather.jar",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "github": {
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
              "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "<YOUR_TOKEN>"}
            }
          }
        }"##,
        &[
            "github docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server GITHUB_PERSONAL_ACCESS_TOKEN=",
        ],
        &[],
    ),
    (
        r##"{
          "globalShortcut": "Ctrl+Space",
          "preferences": {"menuBarEnabled": false},
          "mcpServers": {
            "sqlite": {"command": "uvx", "args": ["mcp-server-sqlite", "--db-path", "/Users/username/test.db"]}
          }
        }"##,
        &["sqlite uvx mcp-server-sqlite --db-path /Users/username/test.db"],
        &["globalShortcut", "preferences"],
    ),
    (
        r##"{
          "mcpServers": {
            "remote-example": {
              "command": "npx",
              "args": ["mcp-remote", "https://remote.mcp.server/sse", "--header", "Authorization:${AUTH_HEADER}"],
              "env": {"AUTH_HEADER": "Bearer <auth-token>"}
            }
          }
        }"##,
        &[
            "remote-example npx mcp-remote https://remote.mcp.server/sse --header Authorization:${AUTH_HEADER} AUTH_HEADER=",
        ],
        &[],
    ),
    (
        r##"{
          "mcpServers": {}
        }"##,
        &[],
        &[],
    ),
    (
        r##"{
          "mcpServers": {
            "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {}},
            "git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "path/to/git/repo"]},
            "time": {"command": "python", "args": ["-m", "mcp_server_time", "--local-timezone=Europe/Berlin"]}
          }
        }"##,
        &[
            "memory npx -y @modelcontextprotocol/server-memory",
            "git uvx mcp-server-git --repository path/to/git/repo",
            "time python -m mcp_server_time --local-timezone=Europe/Berlin",
        ],
        &[],
    ),
];
