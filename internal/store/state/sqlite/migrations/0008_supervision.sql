-- Version 8. What people decide about runs: pauses, which leave claims that were
-- given before them good (fence), decisions about nodes that wait, runs that are
-- dropped, hints that are found without looking at every run, what each attempt
-- measured, and the order in which a run's events were first read.
ALTER TABLE runs ADD COLUMN dropped TEXT; -- JSON object
ALTER TABLE nodes ADD COLUMN fence       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN gate_digest TEXT    NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN decision    TEXT; -- JSON object
ALTER TABLE nodes ADD COLUMN dropped     INTEGER NOT NULL DEFAULT 0;
UPDATE nodes SET fence = epoch;

ALTER TABLE attempts ADD COLUMN stats TEXT; -- JSON object
UPDATE attempts SET stats = b.stats FROM batches b
    WHERE b.node_id = attempts.node_id AND b.batch = attempts.batch AND b.attempt = attempts.attempt AND b.stats IS NOT NULL;

CREATE TABLE notes (
    workspace TEXT    NOT NULL,
    topic     TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    run       INTEGER NOT NULL,
    node      TEXT    NOT NULL,
    data      BLOB,
    time_ms   INTEGER,
    PRIMARY KEY (workspace, topic, name)
) STRICT, WITHOUT ROWID;
INSERT INTO notes
    SELECT workspace, 'open', printf('%019d', run), run, '', NULL, created_ms FROM runs WHERE status = 'running';
CREATE INDEX nodes_by_plan ON nodes (plan_id); -- looked at where a plan is removed

CREATE TABLE spans (
    run_id    INTEGER NOT NULL REFERENCES runs (id),
    place     INTEGER NOT NULL,
    node      TEXT    NOT NULL, -- '': the run itself
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    PRIMARY KEY (run_id, place)
) STRICT, WITHOUT ROWID;
