package sieve

// queue is a list of nodes by age, linked through the nodes.
type queue[K comparable, V any] struct {
	newest, oldest *node[K, V]
	len            int
}

func (q *queue[K, V]) push(n *node[K, V]) {
	n.prev, n.next = nil, q.newest
	if q.newest != nil {
		q.newest.prev = n
	} else {
		q.oldest = n
	}
	q.newest = n
	q.len++
}

// pushOldest puts a node at the other end.
func (q *queue[K, V]) pushOldest(n *node[K, V]) {
	n.prev, n.next = q.oldest, nil
	if q.oldest != nil {
		q.oldest.next = n
	} else {
		q.newest = n
	}
	q.oldest = n
	q.len++
}

// remove takes a node out. The node keeps no link: somebody may keep its entry for
// long, and must not keep others by it.
func (q *queue[K, V]) remove(n *node[K, V]) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		q.newest = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		q.oldest = n.prev
	}
	n.prev, n.next = nil, nil
	q.len--
}

// replace puts a node in another's place.
func (q *queue[K, V]) replace(old, n *node[K, V]) {
	n.prev, n.next = old.prev, old.next
	if n.prev != nil {
		n.prev.next = n
	} else {
		q.newest = n
	}
	if n.next != nil {
		n.next.prev = n
	} else {
		q.oldest = n
	}
	old.prev, old.next = nil, nil
}

// unlink takes all nodes apart, for the reason that remove gives. The queue must not be
// used any more.
func (q *queue[K, V]) unlink() {
	for n := q.newest; n != nil; {
		next := n.next
		n.prev, n.next = nil, nil
		n = next
	}
}
