-- A worker of ours is known by the key of its link alone. The column stays, for SQLite cannot drop a unique one.
UPDATE workers SET credential_sha256 = NULL;
