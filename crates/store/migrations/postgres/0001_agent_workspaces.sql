-- What is wanted: one row for each server, and later for each environment.
CREATE TABLE kb.agent_workspaces (
    id             UUID        NOT NULL PRIMARY KEY,
    container_type TEXT        NOT NULL,
    name           TEXT        NOT NULL,
    image          TEXT,
    config         JSONB       NOT NULL,
    status         TEXT        NOT NULL,
    enabled        BOOLEAN     NOT NULL,
    last_error     JSONB,
    created_at     TIMESTAMPTZ NOT NULL,
    updated_at     TIMESTAMPTZ NOT NULL,
    CONSTRAINT agent_workspaces_name_key UNIQUE (container_type, name)
);
