package index

// Links lead from place to place of a table. They are arrays apart from what readers look
// at, and keep no pair in memory. Their user has a lock for them.
type Links []link // by the number of the place

type link struct{ newer, older Place }

// NewLinks returns links between so many places.
func NewLinks(places int) Links { return make(Links, places) }

// Newer returns the one that came into the queue next, or zero.
func (l Links) Newer(p Place) Place { return l[p.Number()].newer }

// Older returns the one that came into the queue before, or zero.
func (l Links) Older(p Place) Place { return l[p.Number()].older }

// Queue is a list of places by age. It is told the links of its table with each call.
type Queue struct {
	Newest, Oldest Place
	Len            int
}

// Push puts a place in as the newest.
func (q *Queue) Push(l Links, p Place) { q.put(l, p, 0, q.Newest) }

// PushOldest puts a place in at the other end.
func (q *Queue) PushOldest(l Links, p Place) { q.put(l, p, q.Oldest, 0) }

// put puts a place between two neighbours; zero is an end of the queue.
func (q *Queue) put(l Links, p, newer, older Place) {
	l[p.Number()] = link{newer, older}
	if newer != 0 {
		l[newer.Number()].older = p
	} else {
		q.Newest = p
	}
	if older != 0 {
		l[older.Number()].newer = p
	} else {
		q.Oldest = p
	}
	q.Len++
}

// Remove takes a place out.
func (q *Queue) Remove(l Links, p Place) {
	at := l[p.Number()]
	if at.newer != 0 {
		l[at.newer.Number()].older = at.older
	} else {
		q.Newest = at.older
	}
	if at.older != 0 {
		l[at.older.Number()].newer = at.newer
	} else {
		q.Oldest = at.newer
	}
	q.Len--
}

// ToFront makes a place of the queue the newest.
func (q *Queue) ToFront(l Links, p Place) {
	if q.Newest != p {
		q.Remove(l, p)
		q.Push(l, p)
	}
}

// Moved returns the queue between places of another table, with links to, that the places of
// this one have moved to.
func (q Queue) Moved(from, to Links, moved func(Place) Place) Queue {
	var anew Queue
	for p := q.Oldest; p != 0; p = from.Newer(p) {
		anew.Push(to, moved(p))
	}
	return anew
}
