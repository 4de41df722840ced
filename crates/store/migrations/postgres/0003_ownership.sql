-- Which daemon owns the database. `epoch` grows by one with each acquisition; `expires_at` is on
-- the clock of the database, and until then the previous owner may still run its servers.
CREATE TABLE kb.daemon_lease (
    only_row   BOOLEAN     NOT NULL PRIMARY KEY DEFAULT TRUE CHECK (only_row),
    owner      UUID        NOT NULL,
    -- Boot id and device of the owner's data directory.
    host       TEXT        NOT NULL,
    epoch      BIGINT      NOT NULL CHECK (epoch > 0),
    expires_at TIMESTAMPTZ NOT NULL
);

-- The daemon that runs the server, and the epoch in which it claimed the row.
ALTER TABLE kb.agent_workspaces
    ADD COLUMN owner UUID,
    ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
