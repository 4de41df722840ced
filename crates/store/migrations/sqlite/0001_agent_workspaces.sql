-- What is wanted: one row for each server, and later for each environment.
-- STRICT, so that a value of another type is refused when it is written, not found when it is read.
CREATE TABLE kb.agent_workspaces (
    id             TEXT    NOT NULL PRIMARY KEY,
    container_type TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    image          TEXT,
    config         TEXT    NOT NULL CHECK (json_valid(config)),
    status         TEXT    NOT NULL,
    enabled        INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    last_error     TEXT             CHECK (json_valid(last_error)),
    created_at     TEXT    NOT NULL,
    updated_at     TEXT    NOT NULL,
    UNIQUE (container_type, name)
) STRICT;
