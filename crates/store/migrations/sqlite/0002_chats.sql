-- Conversations with their messages, results that are too large for a message, and providers.
CREATE TABLE kb.chat_conversations (
    id         TEXT NOT NULL PRIMARY KEY,
    title      TEXT NOT NULL,
    -- The title in lower case, for searching alike in both databases.
    folded     TEXT NOT NULL,
    settings   TEXT NOT NULL CHECK (json_valid(settings)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX kb.chat_conversations_newest ON chat_conversations (updated_at, id);

CREATE TABLE kb.chat_messages (
    id              TEXT    NOT NULL PRIMARY KEY,
    conversation_id TEXT    NOT NULL REFERENCES chat_conversations (id) ON DELETE CASCADE,
    position        INTEGER NOT NULL,
    body            TEXT    NOT NULL CHECK (json_valid(body)),
    UNIQUE (conversation_id, position)
) STRICT;

CREATE TABLE kb.chat_results (
    call_id         TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES chat_conversations (id) ON DELETE CASCADE,
    body            TEXT NOT NULL CHECK (json_valid(body))
) STRICT;
CREATE INDEX kb.chat_results_conversation ON chat_results (conversation_id);

CREATE TABLE kb.chat_providers (
    id            TEXT    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    base_url      TEXT    NOT NULL,
    api_key       TEXT,
    default_model TEXT,
    is_default    INTEGER NOT NULL CHECK (is_default IN (0, 1)),
    updated_at    TEXT    NOT NULL
) STRICT;
