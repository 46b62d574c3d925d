package index

import "fmt"

// Check returns what is wrong with the table, which nobody may change meanwhile, and how
// many pairs it holds. It is told the hash of each, and is for the tests of who builds on
// the table.
func (t *Table[K, V]) Check(hash func(p Place) uint64) (held int, err error) {
	passed := make([]int, len(t.buckets))
	seen := make(map[K]bool)
	for i := range t.buckets {
		b := &t.buckets[i]
		tags := b.tags.Load()
		for at := range b.pairs {
			pair := b.pairs[at].Load()
			tag := tags >> (8 * at) & 0xff
			if pair == nil {
				if tag != 0 {
					return 0, fmt.Errorf("bucket %d has tag %#x at %d for no pair", i, tag, at)
				}
				continue
			}
			held++
			p := placeOf(uint64(i), uint(at))
			if tag != t.tag(hash(p)) {
				return 0, fmt.Errorf("bucket %d has tag %#x at %d, want %#x", i, tag, at, t.tag(hash(p)))
			}
			if seen[pair.Key()] {
				return 0, fmt.Errorf("key %v is there twice", pair.Key())
			}
			seen[pair.Key()] = true
			if got, place := t.Find(hash(p), pair.Key()); got != pair || place != p || t.At(p) != pair {
				return 0, fmt.Errorf("pair %v is in bucket %d at %d, but found at %d", pair.Key(), i, at, place)
			}
			for j, looked := t.home(hash(p)), 0; j != uint64(i); looked++ {
				passed[j]++
				j = t.after(j, looked, hash(p))
			}
		}
	}
	for i, want := range passed {
		// A count that has once been at its end says nothing more.
		if got := int(t.buckets[i].tags.Load() >> passedBit); got != want && got != passedMax {
			return 0, fmt.Errorf("bucket %d was passed by %d pairs, counts %d", i, want, got)
		}
	}
	return held, nil
}

// Check returns what is wrong with the queue, which nobody may change meanwhile. It is for
// tests too.
func (q *Queue) Check(l Links) error {
	var newer Place
	count := 0
	for p := q.Newest; p != 0; newer, p = p, l.Older(p) {
		if got := l.Newer(p); got != newer {
			return fmt.Errorf("place %d: newer is %d, want %d", p, got, newer)
		}
		if count++; count > q.Len {
			break
		}
	}
	if newer != q.Oldest || count != q.Len {
		return fmt.Errorf("queue of %d: found %d, and the oldest %v", q.Len, count, newer == q.Oldest)
	}
	return nil
}
