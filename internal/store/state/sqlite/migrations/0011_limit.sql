-- Version 11. What a run may take before it is paused.
ALTER TABLE runs ADD COLUMN most TEXT;
