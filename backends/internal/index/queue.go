package index

// Queue is a list of nodes by age, linked through the nodes. Its user has a lock for it.
type Queue[K comparable, X any] struct {
	Newest, Oldest *Node[K, X]
	Len            int
}

// Push puts a node in as the newest.
func (q *Queue[K, X]) Push(n *Node[K, X]) {
	q.link(n, nil, q.Newest)
	q.Len++
}

// PushOldest puts a node at the other end.
func (q *Queue[K, X]) PushOldest(n *Node[K, X]) {
	q.link(n, q.Oldest, nil)
	q.Len++
}

// link puts a node between two neighbours; nil is an end of the queue.
func (q *Queue[K, X]) link(n, newer, older *Node[K, X]) {
	n.prev, n.next = newer, older
	if newer != nil {
		newer.next = n
	} else {
		q.Newest = n
	}
	if older != nil {
		older.prev = n
	} else {
		q.Oldest = n
	}
}

// Remove takes a node out. The node keeps no link: where the entry lies inside it, somebody
// may keep that for long, and must not keep others by it.
func (q *Queue[K, X]) Remove(n *Node[K, X]) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		q.Newest = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		q.Oldest = n.prev
	}
	n.prev, n.next = nil, nil
	q.Len--
}

// Replace puts a node in another's place.
func (q *Queue[K, X]) Replace(old, n *Node[K, X]) {
	q.link(n, old.prev, old.next)
	old.prev, old.next = nil, nil
}

// Unlink takes all nodes apart, for the reason that Remove gives. The queue must not be
// used any more.
func (q *Queue[K, X]) Unlink() {
	for n := q.Newest; n != nil; {
		next := n.next
		n.prev, n.next = nil, nil
		n = next
	}
}

// ToFront makes a node of the queue the newest.
func (q *Queue[K, X]) ToFront(n *Node[K, X]) {
	if q.Newest != n {
		q.Remove(n)
		q.Push(n)
	}
}
