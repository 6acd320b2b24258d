"""Skills on FastMCP: `serve FOLDER` serves those in a folder, `read PROGRAM ARGUMENTS...` lists those of a server, reads all files of each,
and prints what it found."""

import asyncio
import hashlib
import json
import sys
from pathlib import Path
from urllib.parse import quote

from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension
from fastmcp.skills.provider import SkillsDirectoryProvider
from mcp.shared.exceptions import MCPError


def serve(folder: str) -> None:
    server = FastMCP("skills-fastmcp", providers=[SkillsDirectoryProvider(Path(folder))])
    server.run(transport="stdio", show_banner=False)


async def read(command: str, arguments: list[str]) -> None:
    transport = StdioTransport(command=command, args=arguments)
    async with Client(transport, extensions=[SkillsClientExtension()]) as client:
        found = {}
        for entry in await client.list_skills():
            root = entry.uri.removesuffix("SKILL.md")
            skill = await client.read_skill(entry.uri)
            for path, content in skill.files.items():
                found[root + quote(path)] = hashlib.sha256(content).hexdigest()
        try:
            unknown = await client.get_skill("skill://none/SKILL.md")
        except MCPError as error:
            unknown = error.error.code
        print(json.dumps({"found": found, "unknown": unknown}))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        asyncio.run(read(sys.argv[2], sys.argv[3:]))
