package peek

// ChildBytes is the memory that a child is given now.
func (p *Pool) ChildBytes() int64 { return p.memory.Room().Budget().SlotEngineBytes }

// Restrict holds this process to files and its own directory, as a bare child.
func Restrict(dir string, read ...string) ([]string, error) {
	return restrict(settings{Read: read, MemoryBytes: 512 << 20, SpillBytes: 1 << 20}, dir)
}

// ReadRows reads what a child has sent.
var ReadRows = readRows
