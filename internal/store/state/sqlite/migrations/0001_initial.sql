-- Version 1. Times are milliseconds since 1970 in UTC, NULL where unknown.
-- What changes often (claims, counters) is kept apart from what is large and
-- never changes (plans, work), so that a heartbeat rewrites a few bytes only.

CREATE TABLE runs (
    id          INTEGER PRIMARY KEY,
    workspace   TEXT    NOT NULL,
    run         INTEGER NOT NULL CHECK (run > 0),
    status      TEXT    NOT NULL,
    script_path TEXT    NOT NULL,
    params_path TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    start_nodes TEXT    NOT NULL, -- JSON list
    description TEXT    NOT NULL,
    created_ms  INTEGER,
    finished_ms INTEGER,
    failure     TEXT,             -- JSON object
    definition  BLOB,
    UNIQUE (workspace, run)
) STRICT;

CREATE TABLE nodes (
    id             INTEGER PRIMARY KEY,
    run_id         INTEGER NOT NULL REFERENCES runs (id),
    node           TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    ordinal        INTEGER NOT NULL,
    inputs         TEXT    NOT NULL, -- JSON list
    status         TEXT    NOT NULL,
    batches_total  INTEGER NOT NULL DEFAULT 0,
    batches_done   INTEGER NOT NULL DEFAULT 0,
    batches_failed INTEGER NOT NULL DEFAULT 0,
    rows_in        INTEGER NOT NULL DEFAULT 0,
    rows_out       INTEGER NOT NULL DEFAULT 0,
    bytes_in       INTEGER NOT NULL DEFAULT 0,
    bytes_out      INTEGER NOT NULL DEFAULT 0,
    started_ms     INTEGER,
    finished_ms    INTEGER,
    UNIQUE (run_id, node),
    CHECK (batches_done >= 0 AND batches_failed >= 0 AND batches_done + batches_failed <= batches_total)
) STRICT;

-- A row here is what makes a node planned.
CREATE TABLE node_plans (
    node_id INTEGER PRIMARY KEY REFERENCES nodes (id),
    digest  TEXT NOT NULL, -- of plan and batches: tells a repeated plan from another
    plan    BLOB NOT NULL
) STRICT;

CREATE TABLE batch_specs (
    node_id  INTEGER NOT NULL REFERENCES nodes (id),
    batch    INTEGER NOT NULL CHECK (batch >= 0),
    rows_in  INTEGER NOT NULL,
    bytes_in INTEGER NOT NULL,
    work     BLOB,
    PRIMARY KEY (node_id, batch)
) STRICT;

CREATE TABLE batches (
    node_id     INTEGER NOT NULL REFERENCES nodes (id),
    batch       INTEGER NOT NULL CHECK (batch >= 0),
    status      TEXT    NOT NULL,
    attempt     INTEGER NOT NULL DEFAULT 0, -- the latest; never goes back
    owner       TEXT    NOT NULL DEFAULT '',
    lease_ms    INTEGER,
    started_ms  INTEGER,
    finished_ms INTEGER,
    stats       TEXT, -- JSON object
    failure     TEXT, -- JSON object
    PRIMARY KEY (node_id, batch)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    node_id     INTEGER NOT NULL REFERENCES nodes (id),
    batch       INTEGER NOT NULL,
    attempt     INTEGER NOT NULL CHECK (attempt > 0),
    owner       TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    started_ms  INTEGER,
    finished_ms INTEGER,
    failure     TEXT, -- JSON object
    PRIMARY KEY (node_id, batch, attempt)
) STRICT, WITHOUT ROWID;

-- The manifest: parts and files of committed attempts, nothing else.
CREATE TABLE parts (
    node_id   INTEGER NOT NULL REFERENCES nodes (id),
    batch     INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    key       TEXT    NOT NULL,
    bucket    INTEGER NOT NULL,
    rows      INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    schema    TEXT    NOT NULL,
    checksum  TEXT    NOT NULL,
    PRIMARY KEY (node_id, batch, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE files (
    node_id  INTEGER NOT NULL REFERENCES nodes (id),
    batch    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    url      TEXT    NOT NULL,
    rows     INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    checksum TEXT    NOT NULL,
    PRIMARY KEY (node_id, batch, seq)
) STRICT, WITHOUT ROWID;
