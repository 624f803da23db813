-- Times are milliseconds since 1970, UTC, by the server's clock. Booleans are 0 and 1.

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE users (
    id                      INTEGER PRIMARY KEY AUTOINCREMENT,
    username                TEXT    NOT NULL UNIQUE,
    full_name               TEXT,
    is_admin                BOOLEAN NOT NULL,
    password_hash           TEXT    NOT NULL,
    require_password_change BOOLEAN NOT NULL,
    created_ms              BIGINT  NOT NULL,
    updated_ms              BIGINT  NOT NULL
);

-- A browser's login. Only the SHA-256 of the cookie's value is kept: a copy of this file logs nobody in.
CREATE TABLE sessions (
    token_sha256 TEXT   PRIMARY KEY,
    user_id      BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_ms   BIGINT NOT NULL,
    expires_ms   BIGINT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);

CREATE TABLE api_keys (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id       BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name          TEXT   NOT NULL,
    description   TEXT,
    access_key    TEXT   NOT NULL UNIQUE,
    secret_sha256 TEXT   NOT NULL,
    created_ms    BIGINT NOT NULL,
    updated_ms    BIGINT NOT NULL,
    expires_ms    BIGINT,
    UNIQUE (user_id, name)
);

-- `status` is the last report as JSON; heartbeats and readings reach this table in batches.
CREATE TABLE workers (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    worker_uuid         TEXT    NOT NULL UNIQUE,
    name                TEXT    NOT NULL UNIQUE,
    credential_sha256   TEXT    UNIQUE,
    hostname            TEXT    NOT NULL,
    ip                  TEXT    NOT NULL,
    port                INTEGER NOT NULL,
    labels              TEXT    NOT NULL,
    system_reserved     TEXT,
    maintenance         TEXT    NOT NULL,
    version             TEXT,
    status              TEXT    NOT NULL,
    heartbeat_ms        BIGINT,
    devices_expected    INTEGER NOT NULL,
    replace_allowed_for TEXT,
    created_ms          BIGINT  NOT NULL,
    updated_ms          BIGINT  NOT NULL
);

-- What changed about a worker and when, for its page; old rows are removed.
CREATE TABLE worker_events (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    worker_id BIGINT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
    at_ms     BIGINT NOT NULL,
    event     TEXT   NOT NULL
);
CREATE INDEX worker_events_worker ON worker_events (worker_id, id);
