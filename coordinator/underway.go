package coordinator

// underway are the flights of a shard that have begun and not landed, so that Close can
// end them. They are guarded by the shard's mu.
type underway[K comparable, V any] struct {
	first *flight[K, V]
}

func (u *underway[K, V]) add(f *flight[K, V]) {
	f.listed = true
	if f.next = u.first; f.next != nil {
		f.next.prev = f
	}
	u.first = f
}

// remove takes out a flight, if it is in there.
func (u *underway[K, V]) remove(f *flight[K, V]) {
	if !f.listed {
		return
	}
	f.listed = false
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		u.first = f.next
	}
	if f.next != nil {
		f.next.prev = f.prev
	}
	f.prev, f.next = nil, nil
}

// eachUnderway calls do for the flights that are under way at the moment. No lock is held
// meanwhile.
func (t *table[K, V]) eachUnderway(do func(*flight[K, V])) {
	for i := range t.shards {
		s := &t.shards[i]
		var all []*flight[K, V]
		s.mu.Lock()
		for f := s.underway.first; f != nil; f = f.next {
			all = append(all, f)
		}
		s.mu.Unlock()
		for _, f := range all {
			do(f)
		}
	}
}
