-- Which daemon owns the database. `epoch` grows by one with each acquisition.
CREATE TABLE kb.daemon_lease (
    only_row INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    owner    TEXT    NOT NULL,
    epoch    INTEGER NOT NULL CHECK (epoch > 0)
) STRICT;

-- The daemon that runs the server, and the epoch in which it claimed the row.
ALTER TABLE kb.agent_workspaces ADD COLUMN owner TEXT;
ALTER TABLE kb.agent_workspaces ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
