-- Version 4. Partitions that cannot see each other: orders number what
-- happens to a run as a whole (epoch), plans are staged under their digest,
-- a batch's result is one value, and events are written with what they tell of.
ALTER TABLE runs DROP COLUMN definition;
ALTER TABLE runs ADD COLUMN token       TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN epoch       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN last_order  TEXT; -- JSON object
ALTER TABLE runs ADD COLUMN invalidated TEXT; -- JSON object
ALTER TABLE runs ADD COLUMN parent      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN deadline_ms INTEGER;
ALTER TABLE runs ADD COLUMN actor       TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN program     TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN engine      TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN bucket_hash TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN pins        TEXT; -- JSON list
CREATE UNIQUE INDEX runs_by_token ON runs (workspace, token) WHERE token <> '';
CREATE TABLE blobs (
    digest  TEXT PRIMARY KEY,
    content BLOB NOT NULL
) STRICT;
CREATE TABLE roles (
    run_id   INTEGER NOT NULL REFERENCES runs (id),
    role     TEXT    NOT NULL,
    owner    TEXT    NOT NULL, -- '': nobody's
    term     INTEGER NOT NULL,
    until_ms INTEGER,
    PRIMARY KEY (run_id, role)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    run_id  INTEGER NOT NULL REFERENCES runs (id),
    node_id INTEGER NOT NULL, -- 0: of the run itself
    seq     INTEGER NOT NULL,
    version INTEGER NOT NULL,
    time_ms INTEGER,
    actor   TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    data    TEXT    NOT NULL, -- JSON object
    PRIMARY KEY (run_id, node_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE plans (
    id           INTEGER PRIMARY KEY,
    node_id      INTEGER NOT NULL REFERENCES nodes (id),
    digest       TEXT    NOT NULL,
    record       BLOB, -- NULL: not the node's (yet)
    input_digest TEXT    NOT NULL DEFAULT '',
    reused_from  TEXT, -- JSON object
    UNIQUE (node_id, digest)
) STRICT;
CREATE TABLE plan_batches (
    plan_id  INTEGER NOT NULL REFERENCES plans (id),
    batch    INTEGER NOT NULL CHECK (batch >= 0),
    phase    INTEGER NOT NULL,
    class    TEXT    NOT NULL,
    rows_in  INTEGER NOT NULL,
    bytes_in INTEGER NOT NULL,
    work     BLOB,
    PRIMARY KEY (plan_id, batch)
) STRICT;
CREATE TABLE plan_inputs (
    plan_id INTEGER NOT NULL REFERENCES plans (id),
    seq     INTEGER NOT NULL,
    input   TEXT    NOT NULL, -- JSON object
    PRIMARY KEY (plan_id, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO plans (id, node_id, digest, record) SELECT node_id, node_id, digest, plan FROM node_plans;
INSERT INTO plan_batches
    SELECT s.node_id, s.batch, coalesce(CASE WHEN json_valid(CAST(s.work AS TEXT)) THEN json_extract(CAST(s.work AS TEXT), '$.phase') END, 0),
        n.kind, s.rows_in, s.bytes_in, s.work
    FROM batch_specs s JOIN nodes n ON n.id = s.node_id;
-- The files that a node was planned to read were in the work of its batches only.
INSERT INTO plan_inputs
    SELECT plan_id, row_number() OVER (PARTITION BY plan_id ORDER BY first) - 1, input
    FROM (
        SELECT b.plan_id, min(b.batch) AS first,
            json_object('address', t.value ->> 'url', 'bytes', t.value -> 'file_bytes', 'time', t.value ->> 'mod_time', 'rows', -1,
                'digest', coalesce(t.value ->> 'version', t.value ->> 'digest', '')) AS input
        FROM plan_batches b, json_tree(CASE WHEN json_valid(CAST(b.work AS TEXT)) THEN CAST(b.work AS TEXT) ELSE '{}' END) t
        WHERE t.type = 'object' AND t.value -> 'file_bytes' IS NOT NULL
        GROUP BY b.plan_id, input
    );

ALTER TABLE nodes ADD COLUMN table_name  TEXT    NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN fingerprint TEXT    NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN epoch       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN generation  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN gate        BLOB;
ALTER TABLE nodes ADD COLUMN failure     TEXT; -- JSON object
ALTER TABLE nodes ADD COLUMN plan_id     INTEGER REFERENCES plans (id);
UPDATE nodes SET plan_id = id,
    table_name = coalesce((SELECT CASE WHEN json_valid(CAST(p.plan AS TEXT)) THEN json_extract(CAST(p.plan AS TEXT), '$.table') END
        FROM node_plans p WHERE p.node_id = nodes.id), '')
    WHERE id IN (SELECT node_id FROM node_plans);
DROP TABLE batch_specs;
DROP TABLE node_plans;

ALTER TABLE batches ADD COLUMN phase         INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN epoch         INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN tries         INTEGER NOT NULL DEFAULT 0; -- since the latest order
ALTER TABLE batches ADD COLUMN not_before_ms INTEGER;
ALTER TABLE batches ADD COLUMN token         TEXT    NOT NULL DEFAULT '';
UPDATE batches SET phase = p.phase FROM plan_batches p
    WHERE p.plan_id = batches.node_id AND p.batch = batches.batch AND p.phase <> 0;
-- What is not done, so that finding work costs as much as there is to find.
CREATE INDEX batches_open ON batches (node_id, phase, batch) WHERE status <> 'succeeded';
ALTER TABLE attempts ADD COLUMN epoch      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;

-- What an attempt published. It counts while the attempt is its batch's latest
-- and the batch has succeeded, or failed.
CREATE TABLE results (
    node_id INTEGER NOT NULL REFERENCES nodes (id),
    batch   INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    parts   TEXT, -- JSON lists; NULL for none
    files   TEXT,
    checks  TEXT,
    PRIMARY KEY (node_id, batch, attempt)
) STRICT, WITHOUT ROWID;
INSERT INTO results
    SELECT b.node_id, b.batch, b.attempt,
        (SELECT json_group_array(json_object('key', key, 'side', side, 'seq', seq, 'bucket', bucket, 'rows', rows, 'bytes', bytes,
            'raw_bytes', raw_bytes, 'schema', schema, 'checksum', checksum) ORDER BY seq)
            FROM parts p WHERE p.node_id = b.node_id AND p.batch = b.batch),
        (SELECT json_group_array(json_object('url', url, 'rows', rows, 'bytes', bytes, 'checksum', checksum) ORDER BY seq)
            FROM files f WHERE f.node_id = b.node_id AND f.batch = b.batch),
        (SELECT json_group_array(json(result) ORDER BY seq)
            FROM checks c WHERE c.node_id = b.node_id AND c.batch = b.batch)
    FROM batches b WHERE b.status IN ('succeeded', 'failed');
DROP TABLE parts;
DROP TABLE files;
DROP TABLE checks;
CREATE TABLE publications (
    node_id     INTEGER NOT NULL REFERENCES nodes (id),
    batch       INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    publication TEXT    NOT NULL, -- JSON object
    PRIMARY KEY (node_id, batch, attempt, seq)
) STRICT, WITHOUT ROWID;
