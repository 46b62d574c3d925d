package ristretto

// Pending returns how many records have not settled.
func (s *Store[K, V]) Pending() int64 { return s.dirty.Load() }
