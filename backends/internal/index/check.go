package index

import "fmt"

// Check returns what is wrong with the table, which nobody may change meanwhile, and how
// many nodes it holds. It is told the hash of each, and is for the tests of who builds on
// the table.
func (t *Table[K, X]) Check(hash func(*Node[K, X]) uint64) (held int, err error) {
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
			if tag != t.tag(hash(n)) {
				return 0, fmt.Errorf("bucket %d has tag %#x at %d, want %#x", i, tag, at, t.tag(hash(n)))
			}
			if seen[n.Key] {
				return 0, fmt.Errorf("key %v is there twice", n.Key)
			}
			seen[n.Key] = true
			if got := t.Find(hash(n), n.Key); got != n {
				return 0, fmt.Errorf("node %v is in bucket %d at %d, but not found", n.Key, i, at)
			}
			if in, place := t.place(hash(n), n); in != b || place != uint(at) {
				return 0, fmt.Errorf("node %v is in bucket %d at %d, but not found there", n.Key, i, at)
			}
			for j, looked := t.home(hash(n)), 0; j != uint64(i); looked++ {
				passed[j]++
				j = t.after(j, looked, hash(n))
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

// Check returns what is wrong with the queue, which nobody may change meanwhile. It is for
// tests too.
func (q *Queue[K, X]) Check() error {
	var newer *Node[K, X]
	count := 0
	for n := q.Newest; n != nil; newer, n = n, n.next {
		if n.prev != newer {
			return fmt.Errorf("node %v: prev does not lead back", n.Key)
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
