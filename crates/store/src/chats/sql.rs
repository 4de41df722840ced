//! The statements for chats in both dialects. Arguments are text or NULL, and so are results.

/// The statements in one dialect.
pub(crate) struct ChatSql {
    /// search or NULL, updated_at or NULL, id, limit.
    pub(super) list: &'static str,
    /// search or NULL.
    pub(super) count: &'static str,
    /// id.
    pub(super) get: &'static str,
    /// id, title, folded, settings, created_at, updated_at.
    pub(super) insert: &'static str,
    /// id, title, folded.
    pub(super) rename: &'static str,
    /// id, settings, updated_at.
    pub(super) touch: &'static str,
    /// id.
    pub(super) delete: &'static str,
    /// id, conversation, body.
    pub(super) keep_message: &'static str,
    /// conversation, message before which or NULL, limit; newest first.
    pub(super) messages: &'static str,
    /// call, conversation, body.
    pub(super) keep_result: &'static str,
    /// conversation, call or NULL.
    pub(super) results: &'static str,
    pub(super) providers: &'static str,
    /// id, kind, name, base_url, api_key, default_model, is_default, updated_at.
    pub(super) keep_provider: &'static str,
    /// id.
    pub(super) make_default: &'static str,
    /// id.
    pub(super) delete_provider: &'static str,
}

macro_rules! sqlite_conversations {
    ($end:literal) => {
        concat!(
            "SELECT id, title, settings, created_at, updated_at,
                 (SELECT CAST(count(*) AS TEXT) FROM kb.chat_messages m
                  WHERE m.conversation_id = c.id)
             FROM kb.chat_conversations c ",
            $end
        )
    };
}

pub(crate) const SQLITE: ChatSql = ChatSql {
    list: sqlite_conversations!(
        "WHERE ($1 IS NULL OR instr(folded, $1) > 0)
           AND ($2 IS NULL OR (updated_at, id) < ($2, $3))
         ORDER BY updated_at DESC, id DESC LIMIT CAST($4 AS INTEGER)"
    ),
    count: "SELECT CAST(count(*) AS TEXT) FROM kb.chat_conversations
            WHERE $1 IS NULL OR instr(folded, $1) > 0",
    get: sqlite_conversations!("WHERE id = $1"),
    insert: "INSERT INTO kb.chat_conversations
                 (id, title, folded, settings, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6)",
    rename: "UPDATE kb.chat_conversations SET title = $2, folded = $3 WHERE id = $1",
    touch: "UPDATE kb.chat_conversations SET settings = $2, updated_at = $3 WHERE id = $1",
    delete: "DELETE FROM kb.chat_conversations WHERE id = $1",
    keep_message: "INSERT INTO kb.chat_messages (id, conversation_id, position, body)
        VALUES ($1, $2, (SELECT coalesce(max(position), 0) + 1 FROM kb.chat_messages
                         WHERE conversation_id = $2), $3)
        ON CONFLICT (id) DO UPDATE SET body = excluded.body",
    messages: "SELECT body FROM kb.chat_messages
        WHERE conversation_id = $1 AND ($2 IS NULL OR position <
            (SELECT position FROM kb.chat_messages WHERE id = $2 AND conversation_id = $1))
        ORDER BY position DESC LIMIT CAST($3 AS INTEGER)",
    keep_result: "INSERT INTO kb.chat_results (call_id, conversation_id, body) VALUES ($1, $2, $3)",
    results: "SELECT call_id, body FROM kb.chat_results
              WHERE conversation_id = $1 AND ($2 IS NULL OR call_id = $2)",
    providers: "SELECT id, kind, name, base_url, api_key, default_model,
                    CASE is_default WHEN 1 THEN 'true' ELSE 'false' END
                FROM kb.chat_providers ORDER BY id",
    keep_provider: "INSERT INTO kb.chat_providers
            (id, kind, name, base_url, api_key, default_model, is_default, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7 = 'true', $8)
        ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, name = excluded.name,
            base_url = excluded.base_url, api_key = excluded.api_key,
            default_model = excluded.default_model, is_default = excluded.is_default,
            updated_at = excluded.updated_at",
    make_default: "UPDATE kb.chat_providers SET is_default = (id = $1)",
    delete_provider: "DELETE FROM kb.chat_providers WHERE id = $1",
};

macro_rules! postgres_conversations {
    ($end:literal) => {
        concat!(
            r#"SELECT id::text, title, settings,
                   to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                   to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                   (SELECT count(*)::text FROM kb.chat_messages m WHERE m.conversation_id = c.id)
               FROM kb.chat_conversations c "#,
            $end
        )
    };
}

pub(crate) const POSTGRES: ChatSql = ChatSql {
    list: postgres_conversations!(
        "WHERE ($1::text IS NULL OR position($1 IN folded) > 0)
           AND ($2::text IS NULL OR (updated_at, id) < ($2::timestamptz, $3::uuid))
         ORDER BY updated_at DESC, id DESC LIMIT $4::bigint"
    ),
    count: "SELECT count(*)::text FROM kb.chat_conversations
            WHERE $1::text IS NULL OR position($1 IN folded) > 0",
    get: postgres_conversations!("WHERE id = $1::uuid"),
    insert: "INSERT INTO kb.chat_conversations
                 (id, title, folded, settings, created_at, updated_at)
             VALUES ($1::uuid, $2, $3, $4, $5::timestamptz, $6::timestamptz)",
    rename: "UPDATE kb.chat_conversations SET title = $2, folded = $3 WHERE id = $1::uuid",
    touch: "UPDATE kb.chat_conversations SET settings = $2, updated_at = $3::timestamptz
            WHERE id = $1::uuid",
    delete: "DELETE FROM kb.chat_conversations WHERE id = $1::uuid",
    keep_message: "INSERT INTO kb.chat_messages (id, conversation_id, position, body)
        VALUES ($1::uuid, $2::uuid, (SELECT coalesce(max(position), 0) + 1 FROM kb.chat_messages
                                     WHERE conversation_id = $2::uuid), $3)
        ON CONFLICT (id) DO UPDATE SET body = excluded.body",
    messages: "SELECT body FROM kb.chat_messages
        WHERE conversation_id = $1::uuid AND ($2::text IS NULL OR position <
            (SELECT position FROM kb.chat_messages
             WHERE id = $2::uuid AND conversation_id = $1::uuid))
        ORDER BY position DESC LIMIT $3::bigint",
    keep_result: "INSERT INTO kb.chat_results (call_id, conversation_id, body)
                  VALUES ($1::uuid, $2::uuid, $3)",
    results: "SELECT call_id::text, body FROM kb.chat_results
              WHERE conversation_id = $1::uuid AND ($2::text IS NULL OR call_id = $2::uuid)",
    providers: r#"SELECT id, kind, name, base_url, api_key, default_model, is_default::text
                FROM kb.chat_providers ORDER BY id COLLATE "C""#,
    keep_provider: "INSERT INTO kb.chat_providers
            (id, kind, name, base_url, api_key, default_model, is_default, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7::boolean, $8::timestamptz)
        ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, name = excluded.name,
            base_url = excluded.base_url, api_key = excluded.api_key,
            default_model = excluded.default_model, is_default = excluded.is_default,
            updated_at = excluded.updated_at",
    make_default: "UPDATE kb.chat_providers SET is_default = (id = $1)",
    delete_provider: "DELETE FROM kb.chat_providers WHERE id = $1",
};
