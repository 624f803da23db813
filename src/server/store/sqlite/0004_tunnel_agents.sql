-- Agents that keep tunnels. `report` is what one told last, as JSON, and `reported_ms` when; both absent before the first.
CREATE TABLE tunnel_agents (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid        TEXT   NOT NULL UNIQUE,
    name        TEXT   NOT NULL UNIQUE,
    hostname    TEXT   NOT NULL,
    version     TEXT   NOT NULL,
    link_key    TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    report      TEXT,
    reported_ms BIGINT
);
