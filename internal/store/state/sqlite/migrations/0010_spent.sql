-- Version 10. What attempts at a node's batches have spent, in milliseconds: those that succeeded, and the others.
ALTER TABLE nodes ADD COLUMN worked_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN lost_ms INTEGER NOT NULL DEFAULT 0;
UPDATE nodes SET
  worked_ms = coalesce((SELECT sum(max(finished_ms - started_ms, 0)) FROM attempts a
    WHERE a.node_id = nodes.id AND a.status = 'succeeded'), 0),
  lost_ms = coalesce((SELECT sum(max(finished_ms - started_ms, 0)) FROM attempts a
    WHERE a.node_id = nodes.id AND a.status IN ('failed', 'released')), 0);
