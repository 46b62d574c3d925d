package memcached

import (
	"bytes"
	"context"
	"errors"
	"net"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/tier"
)

// gatherers are those of the servers: a server that is slow is to hold up no reads of
// others, and a GetMulti takes as long as its slowest.
type gatherers struct {
	each map[net.Addr]*gather.Gatherer[*memcache.Item]
	// any is for another's client, whose servers we do not know.
	any   *gather.Gatherer[*memcache.Item]
	apart spell
}

func newGatherers(s *Store) *gatherers {
	newOne := func(fetch gather.Fetch[*memcache.Item]) *gather.Gatherer[*memcache.Item] {
		return gather.New(s.gate, s.options.Gather, fetch)
	}
	g := new(gatherers)
	if s.servers == nil {
		g.any = newOne(s.fetchAny)
		return g
	}
	g.each = make(map[net.Addr]*gather.Gatherer[*memcache.Item])
	for _, server := range s.servers.servers {
		g.each[server.addr] = newOne(s.fetch)
	}
	return g
}

// of returns the gatherer for the item, or nil if it is to be asked for alone.
func (g *gatherers) of(s *Store, itemKey string) *gather.Gatherer[*memcache.Item] {
	if g.any != nil {
		if g.apart.lasts() {
			return nil
		}
		return g.any
	}
	server, err := s.servers.PickServer(itemKey)
	if err != nil {
		return nil // the call itself will tell
	}
	return g.each[server]
}

func (g *gatherers) Close() {
	if g.any != nil {
		g.any.Close()
	}
	for _, one := range g.each {
		one.Close()
	}
}

// errApart is the answer to a read that is to be made alone.
var errApart = errors.New("the read could not be made together with others")

// getGathered gets an item in one round trip with others, or else alone. It is nil
// where there is nothing.
func (s *Store) getGathered(ctx context.Context, itemKey string) (*memcache.Item, error) {
	g := s.gatherers.of(s, itemKey)
	if g == nil {
		return s.getAlone(ctx, itemKey)
	}
	a, shared := g.Do(ctx, itemKey)
	switch {
	case errors.Is(a.Err, errApart):
		return s.getAlone(ctx, itemKey)
	case a.Err != nil:
		return nil, s.wrap("get", a.Err)
	case shared && a.Value != nil: // each value is its caller's
		item := *a.Value
		item.Value = bytes.Clone(item.Value)
		return &item, nil
	default:
		return a.Value, nil
	}
}

func (s *Store) getAlone(ctx context.Context, itemKey string) (*memcache.Item, error) {
	return call(ctx, s, "get", func() (*memcache.Item, error) { return s.getItem(ctx, itemKey) })
}

// fetch reads items of one server.
func (s *Store) fetch(ctx context.Context, keys []string, answers []gather.Answer[*memcache.Item]) {
	if len(keys) == 1 {
		answers[0].Value, answers[0].Err = s.getItem(ctx, keys[0])
		return
	}
	var items map[string]*memcache.Item
	err := s.redo(ctx, func() (err error) {
		items, err = s.client.GetMulti(keys) // with an error: what came before it
		return err
	})
	for i, key := range keys {
		if item := items[key]; item != nil {
			answers[i].Value = item
		} else {
			answers[i].Err = err
		}
	}
}

// fetchAny reads items of servers that are not known. If these are several the error
// is that of one, and a stall too, so that others' items are asked for alone.
func (s *Store) fetchAny(ctx context.Context, keys []string, answers []gather.Answer[*memcache.Item]) {
	if len(keys) == 1 {
		s.fetch(ctx, keys, answers)
		return
	}
	defer s.gatherers.apart.beginAfter(stalled).stop()
	s.fetch(ctx, keys, answers)
	for i := range answers {
		if err := answers[i].Err; err != nil && !errors.Is(err, tier.ErrClosed) {
			s.gatherers.apart.begin()
			answers[i].Err = errApart
		}
	}
}
