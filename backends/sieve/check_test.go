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
	t := s.rack.Load()
	if t == nil {
		if s.len() != 0 || s.hand != 0 || s.sketch != nil {
			return fmt.Errorf("closed, but with %d pairs, hand %d, sketch %p", s.len(), s.hand, s.sketch)
		}
		return nil
	}
	handFound := s.hand == 0
	for _, q := range []*index.Queue{&s.window, &s.main} {
		if err := q.Check(t.links); err != nil {
			return err
		}
		for p := q.Newest; p != 0; p = t.links.Older(p) {
			pair := t.At(p)
			if pair == nil {
				return fmt.Errorf("place %d is in a queue, and empty", p)
			}
			if t.isInWindow(p) != (q == &s.window) {
				return fmt.Errorf("%v is in the wrong queue: window %v", pair.Key(), t.isInWindow(p))
			}
			if got, place := t.Find(t.hash(p), pair.Key()); got != pair || place != p {
				return fmt.Errorf("%v is in a queue, but the table gives %p at %d, not %p at %d", pair.Key(), got, place, pair, p)
			}
			handFound = handFound || p == s.hand && q == &s.main
		}
	}
	held, err := t.Check(t.hash)
	mainRoom := s.capacity - s.windowRoom
	switch {
	case err != nil:
		return err
	case t.moving.Load():
		return errors.New("the pairs are said to be moving")
	case held != s.len():
		return fmt.Errorf("table holds %d pairs, window %d, main %d", held, s.window.Len, s.main.Len)
	case !handFound:
		return fmt.Errorf("hand on %d, which is not in main", s.hand)
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
