package cassandra

import "sync"

// memory remembers what never changes once it is there. When it is full it forgets
// something, by chance: what it does not know is read again.
type memory[K comparable, V any] struct {
	most  int
	mu    sync.Mutex
	known map[K]V
}

func newMemory[K comparable, V any](most int) *memory[K, V] {
	return &memory[K, V]{most: most, known: map[K]V{}}
}

func (m *memory[K, V]) get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.known[key]
	return v, ok
}

func (m *memory[K, V]) put(key K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[key]; !ok && len(m.known) >= m.most {
		for other := range m.known {
			delete(m.known, other)
			break
		}
	}
	m.known[key] = v
}

func (m *memory[K, V]) forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}
