"""A client of the official Python SDK that calls one tool and writes the negotiated protocol
version and the text of the result as one line of JSON. Arguments: MODE URL TOOL ARGUMENTS; the
token is in TOKEN."""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(mode, url, tool, arguments):
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        names = [tool.name for tool in (await client.list_tools()).tools]
        called = await client.call_tool(tool, json.loads(arguments))
        seen = {"version": client.protocol_version, "names": names, "text": called.content[0].text}
        print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
