"""A client of the official Python SDK: lists tools, calls one, is asked something by another, and
writes what it saw as one line of JSON. Arguments: MODE DOOR; DOOR is a URL, for which the token is in
TOKEN, or a program to be started with `connect`."""

import asyncio
import contextlib
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult


async def reply(context, params):
    return ElicitResult(action="accept", content={"response": "me"})


@contextlib.asynccontextmanager
async def transport(door):
    if not door.startswith("http"):
        yield stdio_client(StdioServerParameters(command=door, args=["connect"], env=dict(os.environ)))
        return
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        yield streamable_http_client(door, http_client=http)


async def main(mode, door):
    seen = []

    async def progressed(progress, total, message):
        seen.append(progress)

    async with (
        transport(door) as way,
        Client(way, mode=mode, elicitation_callback=reply) as client,
    ):
        tools = (await client.list_tools()).tools
        called = await client.call_tool("w__echo", {"text": "안녕 \U0001F44B"})
        await client.call_tool("x__test_tool_with_progress", {}, progress_callback=progressed)
        asked = await client.call_tool("x__test_elicitation", {"message": "Who?"})
        result = {
            "names": [tool.name for tool in tools],
            "echo": called.content[0].text,
            "asked": asked.content[0].text,
            "progress": seen,
        }
        print(json.dumps(result))


asyncio.run(main(*sys.argv[1:]))
