package capacity

// TableOf returns the report of runs of the user's, by class of node if that is asked for.
func TableOf(name string, runs []Run, byClass bool) (Report, error) {
	r, err := Describe(name, "Runs of "+name, runs, byClass)
	if err != nil {
		return r, err
	}
	r.panels = runPanels(runs)
	return r, nil
}
