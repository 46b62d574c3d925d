package memcached

import (
	"bytes"
	"context"
	"errors"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/tier"
)

// errApart is the answer to a read that is to be made alone.
var errApart = errors.New("the read could not be made together with others")

// get gets an item in one round trip with others, or else alone. It is nil where there is
// nothing.
func (s *Store) get(ctx context.Context, sv *server, itemKey string) (*memcache.Item, error) {
	if sv.gatherer == nil || sv.apart != nil && sv.apart.lasts() {
		return s.getAlone(ctx, sv, itemKey)
	}
	began, err := s.begin(ctx, sv)
	if err != nil {
		return nil, s.wrap("get", err)
	}
	a, shared := sv.gatherer.Do(ctx, itemKey)
	switch {
	case errors.Is(a.Err, errApart):
		return s.getAlone(ctx, sv, itemKey)
	case a.Err != nil:
		return nil, s.wrap("get", sv.watch.end(began, a.Err))
	case shared && a.Value != nil: // each value is its caller's
		item := *a.Value
		item.Value = bytes.Clone(item.Value)
		return &item, nil
	default:
		return a.Value, nil
	}
}

func (s *Store) getAlone(ctx context.Context, sv *server, itemKey string) (*memcache.Item, error) {
	return call(ctx, s, sv, "get", func() (*memcache.Item, error) { return sv.get(ctx, itemKey) })
}

// fetch reads items.
func (sv *server) fetch(ctx context.Context, keys []string, answers []gather.Answer[*memcache.Item]) {
	if sv.watch == nil {
		_ = sv.read(ctx, keys, answers)
		return
	}
	began := sv.watch.now()
	err := sv.read(ctx, keys, answers)
	sv.watch.note(ctx, began, err)
	if err == nil && ctx.Err() == nil { // somebody still waits
		sv.watch.hasAnswered()
	}
}

// read is fetch, and returns the last error.
func (sv *server) read(ctx context.Context, keys []string, answers []gather.Answer[*memcache.Item]) (err error) {
	if len(keys) == 1 {
		answers[0].Value, answers[0].Err = sv.get(ctx, keys[0])
		if answers[0].Err == nil && sv.line != nil {
			sv.line.Connect(keys[0])
		}
		return answers[0].Err
	}
	items, err := sv.getMulti(ctx, keys)
	for i, key := range keys {
		if item := items[key]; item != nil {
			answers[i].Value = item
		} else {
			answers[i].Err = err
		}
	}
	return err
}

// fetchApart reads items of servers that are not known. If these are several the error
// is that of one, and a stall too, so that others' items are asked for alone.
func (sv *server) fetchApart(ctx context.Context, keys []string, answers []gather.Answer[*memcache.Item]) {
	if len(keys) == 1 {
		_ = sv.read(ctx, keys, answers)
		return
	}
	defer sv.apart.watch().stop()
	_ = sv.read(ctx, keys, answers)
	for i := range answers {
		if err := answers[i].Err; err != nil && !errors.Is(err, tier.ErrClosed) {
			sv.apart.begin()
			answers[i].Err = errApart
		}
	}
}
