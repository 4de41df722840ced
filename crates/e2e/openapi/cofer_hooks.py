"""Hooks of schemathesis: generated registrations cannot start a program or reach another machine, some requests go to
a server that exists, and nothing waits for long."""

import os

import schemathesis

# Operations below this path, their parameter, and what exists of it.
EXISTING = [
    ("/mcp/servers/{id}", "id", "w"),
    ("/activity/{call_id}", "call_id", os.environ["COFER_TEST_CALL"]),
    ("/chat/conversations/{id}", "id", os.environ["COFER_TEST_CONVERSATION"]),
]


@schemathesis.hook
def map_body(context, body):
    if not isinstance(body, dict):
        return body
    # The daemon's PATH is empty already; an absolute path must not name a program either.
    if isinstance(body.get("command"), str) and body["command"].strip():
        body["command"] = "./no-such-program " + body["command"]
    if isinstance(body.get("base_url"), str) and body["base_url"].strip():
        body["base_url"] = "http://127.0.0.1:9/v1"
    if isinstance(body.get("url"), str) and body["url"].strip():
        body["url"] = "http://127.0.0.1:9/mcp"
    return body


@schemathesis.hook
def map_query(context, query):
    # A documented request may wait for up to ten minutes.
    if isinstance(query, dict) and isinstance(query.get("wait"), (int, float)):
        query["wait"] = min(query["wait"], 0.1)
    return query


@schemathesis.hook
def map_path_parameters(context, parameters):
    if not isinstance(parameters, dict):
        return parameters
    path, method = context.operation.path, context.operation.method.upper()
    for prefix, key, existing in EXISTING:
        if not path.startswith(prefix):
            continue
        if method == "DELETE":
            # schemathesis learns ids from responses; what exists is needed until the end.
            parameters[key] = "no-" + str(parameters.get(key))
        elif len(str(parameters.get(key))) % 4 != 1:
            parameters[key] = existing
    return parameters
