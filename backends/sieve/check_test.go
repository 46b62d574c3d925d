package sieve

import (
	"errors"
	"fmt"

	"github.com/terracecache/terrace/backends/internal/index"
)

// check returns what is wrong with the store, which nobody else may use meanwhile.
func (s *Store[K, V]) check() error {
	var all []error
	for i := range s.shards {
		if err := s.shards[i].check(); err != nil {
			all = append(all, fmt.Errorf("shard %d: %w", i, err))
		}
	}
	return errors.Join(all...)
}

func (s *shard[K, V]) check() error {
	t := s.table.Load()
	if t == nil {
		if s.len() != 0 || s.hand != nil || s.sketch != nil {
			return fmt.Errorf("closed, but with %d nodes, hand %p, sketch %p", s.len(), s.hand, s.sketch)
		}
		return nil
	}
	handFound := s.hand == nil
	for _, q := range []*index.Queue[K, record]{&s.window, &s.main} {
		if err := q.Check(); err != nil {
			return err
		}
		for n := q.Newest; n != nil; n = n.Older() {
			if n.Item.window != (q == &s.window) {
				return fmt.Errorf("node %v is in the wrong queue: window %v", n.Key, n.Item.window)
			}
			if got := t.Find(n.Item.hash, n.Key); got != n {
				return fmt.Errorf("node %v is in a queue, but the table gives %p, not %p", n.Key, got, n)
			}
			handFound = handFound || n == s.hand && q == &s.main
		}
	}
	held, err := t.Check(hashOf)
	mainRoom := s.capacity - s.windowRoom
	switch {
	case err != nil:
		return err
	case held != s.len():
		return fmt.Errorf("table holds %d nodes, window %d, main %d", held, s.window.Len, s.main.Len)
	case !handFound:
		return fmt.Errorf("hand on %v, which is not in main", s.hand.Key)
	case s.window.Len > s.windowRoom || s.main.Len > mainRoom:
		return fmt.Errorf("window holds %d of %d, main %d of %d", s.window.Len, s.windowRoom, s.main.Len, mainRoom)
	case held > t.Room() || t.Room() > s.capacity:
		return fmt.Errorf("table holds %d of %d, capacity %d", held, t.Room(), s.capacity)
	case !s.filtered && (s.windowRoom != 0 || s.sketch != nil):
		return fmt.Errorf("not filtered, but with a window of %d and sketch %p", s.windowRoom, s.sketch)
	case s.filtered && held == s.capacity && s.sketch == nil:
		return errors.New("full without a sketch")
	case s.filtered && held == s.capacity && !s.sketch.isFor(s.capacity):
		return fmt.Errorf("full with a sketch for %d, capacity %d", s.sketch.limit/samplePerKey, s.capacity)
	}
	return nil
}
