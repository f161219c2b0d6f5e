-- Version 7. Batches that somebody is at work on, that failed, or that wait to
-- be tried again: few among many that are done or have not begun.
CREATE INDEX batches_unsettled ON batches (node_id, batch) WHERE status IN ('claimed', 'failed') OR not_before_ms IS NOT NULL;
