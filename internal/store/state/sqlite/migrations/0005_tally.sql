-- Version 5. What a node's ended batches measured, summed up. NULL: nothing
-- has been since that is kept; then it is summed up when it is asked for.
ALTER TABLE nodes ADD COLUMN tally TEXT; -- JSON object
