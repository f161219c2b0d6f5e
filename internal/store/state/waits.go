package state

// Waits reports whether nothing of a run with these nodes can be done before
// somebody decides.
func Waits(nodes []Node) bool {
	done, waiting := map[string]bool{}, false
	for _, n := range nodes {
		done[n.Name] = n.Status == Succeeded
	}
	for _, n := range nodes {
		if n.Status == Running || n.Status == Failed || n.Status == Pending && n.Ready(done) {
			return false
		}
		waiting = waiting || n.Status == Waiting
	}
	return waiting
}

// Ready reports whether all nodes that one reads have succeeded; done says
// which have.
func (s NodeSpec) Ready(done map[string]bool) bool {
	for _, in := range s.Inputs {
		if !done[in] {
			return false
		}
	}
	return true
}
