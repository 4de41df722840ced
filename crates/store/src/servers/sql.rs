//! The statements for servers in both dialects. Arguments are text or NULL; a flag is `true` or
//! `false`. Each statement is one change: it is stored whole or not at all. A change runs in a
//! transaction that has checked `kb.daemon_lease` before, so that a new row takes owner and epoch
//! from there.

/// The statements in one dialect.
pub(crate) struct Sql {
    pub(super) list: &'static str,
    /// id.
    pub(super) get: &'static str,
    /// name.
    pub(super) find_by_name: &'static str,
    /// id, name, image, config, status, enabled, last_error, created_at, updated_at.
    pub(super) insert: &'static str,
    /// id, name, image, config, enabled, updated_at.
    pub(super) update_spec: &'static str,
    /// id, enabled, updated_at.
    pub(super) set_enabled: &'static str,
    /// id, last_error.
    pub(super) fail: &'static str,
    /// id, last_error, updated_at.
    pub(super) fail_and_disable: &'static str,
    /// id, status.
    pub(super) record_status: &'static str,
    /// id, status; forgets the last failure.
    pub(super) recover: &'static str,
    /// id.
    pub(super) delete: &'static str,
}

macro_rules! sqlite_select {
    ($end:literal) => {
        concat!(
            "SELECT id, name, config, status, enabled, last_error, created_at, updated_at, owner,
                 epoch
             FROM kb.agent_workspaces WHERE container_type = 'mcp_server' ",
            $end
        )
    };
}

macro_rules! update {
    ($id:literal, $set:literal) => {
        concat!(
            "UPDATE kb.agent_workspaces SET ",
            $set,
            " WHERE container_type = 'mcp_server' AND id = ",
            $id
        )
    };
}

pub(crate) const SQLITE: Sql = Sql {
    list: sqlite_select!("ORDER BY name"),
    get: sqlite_select!("AND id = $1"),
    find_by_name: sqlite_select!("AND name = $1"),
    insert: "INSERT INTO kb.agent_workspaces (id, container_type, name, image, config, status,
                 enabled, last_error, created_at, updated_at, owner, epoch)
             SELECT $1, 'mcp_server', $2, $3, $4, $5, $6 = 'true', $7, $8, $9, owner, epoch
             FROM kb.daemon_lease",
    update_spec: update!(
        "$1",
        "name = $2, image = $3, config = $4, enabled = $5 = 'true', updated_at = $6"
    ),
    set_enabled: update!(
        "$1",
        "enabled = $2 = 'true', config = json_set(config, '$.enabled', json($2)), updated_at = $3"
    ),
    fail: update!("$1", "status = 'error', last_error = $2"),
    fail_and_disable: update!(
        "$1",
        "status = 'error', last_error = $2, enabled = 0,
         config = json_set(config, '$.enabled', json('false')), updated_at = $3"
    ),
    record_status: update!("$1", "status = $2"),
    recover: update!("$1", "status = $2, last_error = NULL"),
    delete: "DELETE FROM kb.agent_workspaces WHERE container_type = 'mcp_server' AND id = $1",
};

// Times are read in the form that SQLite has them in.
macro_rules! postgres_select {
    ($end:literal) => {
        concat!(
            r#"SELECT id::text, name, config::text, status, enabled, last_error::text,
                   to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                   to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                   owner::text, epoch
               FROM kb.agent_workspaces WHERE container_type = 'mcp_server' "#,
            $end
        )
    };
}

pub(crate) const POSTGRES: Sql = Sql {
    // "C" is the order of bytes, which is SQLite's.
    list: postgres_select!(r#"ORDER BY name COLLATE "C""#),
    get: postgres_select!("AND id = $1::uuid"),
    find_by_name: postgres_select!("AND name = $1"),
    insert: "INSERT INTO kb.agent_workspaces (id, container_type, name, image, config, status,
                 enabled, last_error, created_at, updated_at, owner, epoch)
             SELECT $1::uuid, 'mcp_server', $2, $3, $4::jsonb, $5, $6::boolean, $7::jsonb,
                 $8::timestamptz, $9::timestamptz, owner, epoch
             FROM kb.daemon_lease",
    update_spec: update!(
        "$1::uuid",
        "name = $2, image = $3, config = $4::jsonb, enabled = $5::boolean,
         updated_at = $6::timestamptz"
    ),
    set_enabled: update!(
        "$1::uuid",
        "enabled = $2::boolean, config = jsonb_set(config, '{enabled}', $2::jsonb),
         updated_at = $3::timestamptz"
    ),
    fail: update!("$1::uuid", "status = 'error', last_error = $2::jsonb"),
    fail_and_disable: update!(
        "$1::uuid",
        "status = 'error', last_error = $2::jsonb, enabled = false,
         config = jsonb_set(config, '{enabled}', 'false'), updated_at = $3::timestamptz"
    ),
    record_status: update!("$1::uuid", "status = $2"),
    recover: update!("$1::uuid", "status = $2, last_error = NULL"),
    delete: "DELETE FROM kb.agent_workspaces
             WHERE container_type = 'mcp_server' AND id = $1::uuid",
};
