package view

import "thalweg/internal/ops/causes"

// Causes say what limited a run.
type Causes = causes.Report
