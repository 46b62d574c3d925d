package capture

import "github.com/terracecache/terrace/bench/internal/trace"

// Tally counts what became of requests. A deletion is a request and never a hit; a write
// is a hit if its key is held.
type Tally struct {
	Requests, Hits  int64
	Reads, ReadHits int64
	Bytes, HitBytes float64 // of the objects that were asked for or written
	Cost, HitCost   float64 // of what would have been paid without a cache, and of what was not
}

// Count adds a request.
func (t *Tally) Count(q *trace.Request, hit bool) {
	t.Requests++
	if q.Op == trace.Delete {
		return
	}
	t.Bytes += float64(q.Size)
	t.Cost += q.Cost
	if q.Op == trace.Read {
		t.Reads++
	}
	if !hit {
		return
	}
	t.Hits++
	t.HitBytes += float64(q.Size)
	t.HitCost += q.Cost
	if q.Op == trace.Read {
		t.ReadHits++
	}
}
