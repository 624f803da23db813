-- A worker of ours is known by the key of its link alone. The column stays, for SQLite cannot drop a unique one.
UPDATE workers SET credential_sha256 = NULL;

-- What is observed of a worker has rows of its own: SQLite writes a row as a whole, and a heartbeat must not write a
-- report of several kilobytes anew. `status` is the last report as JSON.
CREATE TABLE worker_heartbeats (
    worker_id    INTEGER PRIMARY KEY REFERENCES workers (id) ON DELETE CASCADE,
    heartbeat_ms BIGINT  NOT NULL
);
CREATE TABLE worker_reports (
    worker_id        INTEGER PRIMARY KEY REFERENCES workers (id) ON DELETE CASCADE,
    status           TEXT    NOT NULL,
    devices_expected INTEGER NOT NULL
);
INSERT INTO worker_heartbeats (worker_id, heartbeat_ms)
SELECT id, heartbeat_ms FROM workers WHERE heartbeat_ms IS NOT NULL;
INSERT INTO worker_reports (worker_id, status, devices_expected) SELECT id, status, devices_expected FROM workers;
ALTER TABLE workers DROP COLUMN heartbeat_ms;
ALTER TABLE workers DROP COLUMN status;
ALTER TABLE workers DROP COLUMN devices_expected;
