-- The tools, prompts, resources and templates that each server last listed, with the peer that
-- listed them and the digest of the configuration that it ran with. JSON is kept as text, as the
-- server sent it: JSONB would give its keys another order.
CREATE TABLE kb.mcp_server_lists (
    server_id   UUID NOT NULL PRIMARY KEY REFERENCES kb.agent_workspaces (id) ON DELETE CASCADE,
    spec_digest TEXT NOT NULL,
    peer        TEXT NOT NULL,
    lists       TEXT NOT NULL
);
