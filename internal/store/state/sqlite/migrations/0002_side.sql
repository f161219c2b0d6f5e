-- Version 2. Rows beside a table (failed checks, quarantined rows) and what
-- checks found. Failed batches have them too, until they are tried again.

ALTER TABLE parts ADD COLUMN side TEXT NOT NULL DEFAULT '';

CREATE TABLE checks (
    node_id INTEGER NOT NULL REFERENCES nodes (id),
    batch   INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    result  TEXT    NOT NULL, -- JSON object
    PRIMARY KEY (node_id, batch, seq)
) STRICT, WITHOUT ROWID;
