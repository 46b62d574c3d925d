package coordinator

import "sync"

// underway are the flights that have begun and not landed, so that Close can end
// them.
type underway[K comparable, V any] struct {
	mu    sync.Mutex
	first *flight[K, V]
}

func (u *underway[K, V]) add(f *flight[K, V]) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f.next = u.first; f.next != nil {
		f.next.prev = f
	}
	u.first = f
}

func (u *underway[K, V]) remove(f *flight[K, V]) {
	u.mu.Lock()
	defer u.mu.Unlock()
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

// each calls f for those under way at the moment. The lock is not held meanwhile.
func (u *underway[K, V]) each(do func(*flight[K, V])) {
	var all []*flight[K, V]
	u.mu.Lock()
	for f := u.first; f != nil; f = f.next {
		all = append(all, f)
	}
	u.mu.Unlock()
	for _, f := range all {
		do(f)
	}
}
