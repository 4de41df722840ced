"""The everything-server of the Python SDK over stdio; by itself it speaks HTTP only. Argument: its
folder in the SDK's source distribution."""

import sys

sys.path.insert(0, sys.argv[1])

from mcp_everything_server.server import mcp  # noqa: E402

mcp.run(transport="stdio")
