package budget

// Look takes a sample now.
func (m *Meter) Look() { m.look() }
