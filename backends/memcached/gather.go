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

// get gets an item in one round trip with others, or else alone.
func (s *Store) get(ctx context.Context, sv *server, itemKey string) (item, error) {
	if sv.gatherer == nil || sv.apart != nil && sv.apart.lasts() {
		return s.getAlone(ctx, sv, itemKey)
	}
	began, err := s.begin(ctx, sv)
	if err != nil {
		return item{}, s.wrap("get", err)
	}
	a, shared := sv.gatherer.Do(ctx, itemKey)
	switch {
	case errors.Is(a.Err, errApart):
		return s.getAlone(ctx, sv, itemKey)
	case a.Err != nil:
		return item{}, s.wrap("get", sv.watch.end(began, a.Err))
	case shared: // each value is its caller's
		return item{bytes.Clone(a.Value.value), a.Value.flags}, nil
	default:
		return a.Value, nil
	}
}

func (s *Store) getAlone(ctx context.Context, sv *server, itemKey string) (item, error) {
	return callBy(ctx, s, sv, sv.readGate, "get", func() (item, error) {
		var answer [1]gather.Answer[item]
		err := sv.read(ctx, []string{itemKey}, answer[:])
		return answer[0].Value, err
	})
}

// fetch reads items.
func (sv *server) fetch(ctx context.Context, keys []string, answers []gather.Answer[item]) {
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

// read is fetch, and returns the last error. It is that of the keys that have no answer.
func (sv *server) read(ctx context.Context, keys []string, answers []gather.Answer[item]) (err error) {
	if sv.readers != nil {
		err = sv.redo(ctx, func() error { return sv.readers.read(keys, answers) })
	} else {
		err = sv.readByClient(ctx, keys, answers)
	}
	if err != nil {
		for i := range answers {
			if answers[i].Value.value == nil {
				answers[i].Err = err
			}
		}
	} else if len(keys) == 1 && sv.line != nil {
		sv.line.Connect(keys[0])
	}
	return err
}

// readByClient reads by gomemcache.
func (sv *server) readByClient(ctx context.Context, keys []string, answers []gather.Answer[item]) error {
	if len(keys) == 1 {
		read, err := sv.get(ctx, keys[0])
		answers[0].Value = itemOf(read)
		return err
	}
	var items map[string]*memcache.Item
	err := sv.redo(ctx, func() (err error) {
		items, err = sv.client.GetMulti(keys)
		return err
	})
	for i, key := range keys {
		if read, ok := items[key]; ok {
			answers[i].Value = itemOf(read)
			delete(items, key)
		}
	}
	if err == nil && len(items) > 0 {
		return errNotAsked
	}
	return err
}

// fetchApart reads items of servers that are not known. If these are several the error
// is that of one, and a stall too, so that others' items are asked for alone.
func (sv *server) fetchApart(ctx context.Context, keys []string, answers []gather.Answer[item]) {
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
