-- The tools, prompts, resources and templates that each server last listed, with the peer that
-- listed them and the digest of the configuration that it ran with.
CREATE TABLE kb.mcp_server_lists (
    server_id   TEXT NOT NULL PRIMARY KEY REFERENCES agent_workspaces (id) ON DELETE CASCADE,
    spec_digest TEXT NOT NULL,
    peer        TEXT NOT NULL CHECK (json_valid(peer)),
    lists       TEXT NOT NULL
) STRICT;
