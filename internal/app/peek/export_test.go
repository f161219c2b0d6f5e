package peek

// ChildBytes is the memory that a child is given now.
func (p *Pool) ChildBytes() int64 { return p.memory.Room().Budget().SlotEngineBytes }
