package sieve

import (
	"errors"
	"fmt"
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
	for _, q := range []*queue[K, V]{&s.window, &s.main} {
		if err := q.check(); err != nil {
			return err
		}
		for n := q.newest; n != nil; n = n.next {
			if n.window != (q == &s.window) {
				return fmt.Errorf("node %v is in the wrong queue: window %v", n.key, n.window)
			}
			if got, _, _ := t.find(n.hash, n.key); got != n {
				return fmt.Errorf("node %v is in a queue, but the table gives %p, not %p", n.key, got, n)
			}
			handFound = handFound || n == s.hand && q == &s.main
		}
	}
	held, err := t.check()
	mainRoom := s.capacity - s.windowRoom
	switch {
	case err != nil:
		return err
	case held != s.len():
		return fmt.Errorf("table holds %d nodes, window %d, main %d", held, s.window.len, s.main.len)
	case !handFound:
		return fmt.Errorf("hand on %v, which is not in main", s.hand.key)
	case s.window.len > s.windowRoom || s.main.len > mainRoom:
		return fmt.Errorf("window holds %d of %d, main %d of %d", s.window.len, s.windowRoom, s.main.len, mainRoom)
	case held > t.room || t.room > s.capacity:
		return fmt.Errorf("table holds %d of %d, capacity %d", held, t.room, s.capacity)
	case !s.filtered && (s.windowRoom != 0 || s.sketch != nil):
		return fmt.Errorf("not filtered, but with a window of %d and sketch %p", s.windowRoom, s.sketch)
	case s.filtered && held == s.capacity && s.sketch == nil:
		return errors.New("full without a sketch")
	case s.filtered && held == s.capacity && !s.sketch.isFor(s.capacity):
		return fmt.Errorf("full with a sketch for %d, capacity %d", s.sketch.limit/samplePerKey, s.capacity)
	}
	return nil
}

func (q *queue[K, V]) check() error {
	var newer *node[K, V]
	count := 0
	for n := q.newest; n != nil; newer, n = n, n.next {
		if n.prev != newer {
			return fmt.Errorf("node %v: prev does not lead back", n.key)
		}
		if count++; count > q.len {
			break
		}
	}
	if newer != q.oldest || count != q.len {
		return fmt.Errorf("queue of %d: found %d, and the oldest %v", q.len, count, newer == q.oldest)
	}
	return nil
}

// check also returns how many nodes the table holds.
func (t *table[K, V]) check() (held int, err error) {
	passed := make([]int, len(t.buckets))
	seen := make(map[K]bool)
	for i := range t.buckets {
		b := &t.buckets[i]
		tags := b.tags.Load()
		for at := range b.nodes {
			n := b.nodes[at].Load()
			tag := tags >> (8 * at) & 0xff
			if n == nil {
				if tag != 0 {
					return 0, fmt.Errorf("bucket %d has tag %#x at %d for no node", i, tag, at)
				}
				continue
			}
			held++
			if tag != tagOf(n.hash) {
				return 0, fmt.Errorf("bucket %d has tag %#x at %d, want %#x", i, tag, at, tagOf(n.hash))
			}
			if seen[n.key] {
				return 0, fmt.Errorf("key %v is there twice", n.key)
			}
			seen[n.key] = true
			if got, bucket, place := t.find(n.hash, n.key); got != n || bucket != b || place != uint(at) {
				return 0, fmt.Errorf("node %v is in bucket %d at %d, but not found there", n.key, i, at)
			}
			for home := int(t.home(n.hash)); home != i; home = (home + 1) % len(t.buckets) {
				passed[home]++
			}
		}
	}
	for i, want := range passed {
		// A count that has once been at its end says nothing more.
		if got := int(t.buckets[i].tags.Load() >> passedBit); got != want && got != passedMax {
			return 0, fmt.Errorf("bucket %d was passed by %d nodes, counts %d", i, want, got)
		}
	}
	return held, nil
}
