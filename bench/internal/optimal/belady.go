// Package optimal has bounds of what any cache can do on a trace that it knows to the end.
package optimal

import (
	"context"
	"slices"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/trace"
)

// Belady returns what the best possible cache of so many entries does: when there is no
// room it lets go of what is asked for last, and does not store what is asked for after
// all that it holds. No cache of that size has more hits. The recording is linked; tick is
// told how many requests are done. Memory is that of six numbers an entry. Source:
// Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
// Journal 1966, with the choice not to store.
func Belady(ctx context.Context, rec *capture.Trace, capacity int64, tick func(int64)) (capture.Tally, error) {
	var tally capture.Tally
	c := cache{held: rec.NewMarks(capacity)}
	err := rec.Each(ctx, func(b *capture.Batch) error {
		for i := range b.Requests {
			now := b.First + int64(i)
			q := &b.Requests[i]
			tally.Count(q, c.held.Remove(now))
			if next := b.Next[i]; next < capture.Gone && q.Op != trace.Delete {
				c.store(next)
				if int64(c.held.Len()) > capacity {
					c.evict()
				}
			}
			if len(c.order) > 2*c.held.Len()+slack {
				c.forget(now)
			}
		}
		tick(b.First + int64(len(b.Requests)))
		return nil
	})
	return tally, err
}

// EntryMemory is what Belady takes for an entry, in bytes: a mark, and up to twice its place
// in the order.
const EntryMemory = 48

// cache holds entries that are known by when they are asked for next, which no two are at
// once.
type cache struct {
	held *capture.Marks
	// order has the entry that is asked for last at its top. It also has entries that
	// were hits since: these are all below those that are held.
	order latest
}

// slack keeps a small cache from tidying up all the time.
const slack = 1024

func (c *cache) store(next int64) {
	c.held.Add(next)
	c.order.push(next)
}

func (c *cache) evict() { c.held.Remove(c.order.pop()) }

// forget drops what is over from the order.
func (c *cache) forget(now int64) {
	c.order = slices.DeleteFunc(c.order, func(next int64) bool { return next <= now })
	c.order.order()
}
