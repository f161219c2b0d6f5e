-- Version 9. How urgent a run is beside others.
ALTER TABLE runs ADD COLUMN priority TEXT NOT NULL DEFAULT '';
