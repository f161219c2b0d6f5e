-- Version 6. Few batches publish files or checks: finding those costs as much
-- as there is to find, not as there are batches.
CREATE INDEX results_with_checks ON results (node_id, batch, attempt) WHERE checks IS NOT NULL;
CREATE INDEX results_with_files ON results (node_id, batch, attempt) WHERE files IS NOT NULL;
