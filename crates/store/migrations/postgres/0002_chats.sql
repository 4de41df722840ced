-- Conversations with their messages, results that are too large for a message, and providers.
-- JSON is kept as text, as it was written: JSONB would give its keys another order.
CREATE TABLE kb.chat_conversations (
    id         UUID        NOT NULL PRIMARY KEY,
    title      TEXT        NOT NULL,
    -- The title in lower case, for searching alike in both databases.
    folded     TEXT        NOT NULL,
    settings   TEXT        NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX chat_conversations_newest ON kb.chat_conversations (updated_at, id);

CREATE TABLE kb.chat_messages (
    id              UUID   NOT NULL PRIMARY KEY,
    conversation_id UUID   NOT NULL REFERENCES kb.chat_conversations (id) ON DELETE CASCADE,
    position        BIGINT NOT NULL,
    body            TEXT   NOT NULL,
    CONSTRAINT chat_messages_position_key UNIQUE (conversation_id, position)
);

CREATE TABLE kb.chat_results (
    call_id         UUID NOT NULL PRIMARY KEY,
    conversation_id UUID NOT NULL REFERENCES kb.chat_conversations (id) ON DELETE CASCADE,
    body            TEXT NOT NULL
);
CREATE INDEX chat_results_conversation ON kb.chat_results (conversation_id);

CREATE TABLE kb.chat_providers (
    id            TEXT        NOT NULL PRIMARY KEY,
    kind          TEXT        NOT NULL,
    name          TEXT        NOT NULL,
    base_url      TEXT        NOT NULL,
    api_key       TEXT,
    default_model TEXT,
    is_default    BOOLEAN     NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL
);
