-- Version 3. Which script a run is of, so that no run reads tables of another
-- script unasked, and the runs that it was told to read them from.

ALTER TABLE runs ADD COLUMN script TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN sources TEXT; -- JSON list
