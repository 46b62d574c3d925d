package sieve

import "github.com/terracecache/terrace/backends/internal/index"

// queue is a list of nodes by age, linked through the nodes.
type queue[K comparable, V any] struct {
	newest, oldest *index.Node[K, record[K, V]]
	len            int
}

func (q *queue[K, V]) push(n *index.Node[K, record[K, V]]) {
	n.Item.prev, n.Item.next = nil, q.newest
	if q.newest != nil {
		q.newest.Item.prev = n
	} else {
		q.oldest = n
	}
	q.newest = n
	q.len++
}

// pushOldest puts a node at the other end.
func (q *queue[K, V]) pushOldest(n *index.Node[K, record[K, V]]) {
	n.Item.prev, n.Item.next = q.oldest, nil
	if q.oldest != nil {
		q.oldest.Item.next = n
	} else {
		q.newest = n
	}
	q.oldest = n
	q.len++
}

// remove takes a node out. The node keeps no link: somebody may keep its entry for
// long, and must not keep others by it.
func (q *queue[K, V]) remove(n *index.Node[K, record[K, V]]) {
	if n.Item.prev != nil {
		n.Item.prev.Item.next = n.Item.next
	} else {
		q.newest = n.Item.next
	}
	if n.Item.next != nil {
		n.Item.next.Item.prev = n.Item.prev
	} else {
		q.oldest = n.Item.prev
	}
	n.Item.prev, n.Item.next = nil, nil
	q.len--
}

// replace puts a node in another's place.
func (q *queue[K, V]) replace(old, n *index.Node[K, record[K, V]]) {
	n.Item.prev, n.Item.next = old.Item.prev, old.Item.next
	if n.Item.prev != nil {
		n.Item.prev.Item.next = n
	} else {
		q.newest = n
	}
	if n.Item.next != nil {
		n.Item.next.Item.prev = n
	} else {
		q.oldest = n
	}
	old.Item.prev, old.Item.next = nil, nil
}

// unlink takes all nodes apart, for the reason that remove gives. The queue must not be
// used any more.
func (q *queue[K, V]) unlink() {
	for n := q.newest; n != nil; {
		next := n.Item.next
		n.Item.prev, n.Item.next = nil, nil
		n = next
	}
}
