package lab

import (
	"context"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// Unprotected is what one would write without a library: read; where that finds
// nothing that the policy serves, load and write. Each reader decides alone. Entries
// and policies are those of a cache, so that nothing but the protection is missing.
func Unprotected(name string, life policy.Lifetime, refresh policy.Strategy) Strategy {
	return Strategy{Name: name, Does: does[name], open: func(o *Origin, seed uint64) (reader, error) {
		return &unprotected{store: lru.New[string, Answer](100), life: life, refresh: seeded(refresh, seed), origin: o}, nil
	}}
}

type unprotected struct {
	store   tier.Store[string, Answer]
	life    policy.Lifetime
	refresh policy.Strategy
	origin  *Origin
}

func (u *unprotected) read(ctx context.Context, key string) (Answer, error) {
	e, err := u.store.Get(ctx, key)
	if err != nil {
		return Answer{}, err
	}
	if e != nil {
		now := tier.Now()
		reading := policy.Reading{
			Age:      now.Sub(e.LoadedAt()),
			FreshFor: e.FreshUntil().Sub(now),
			StaleFor: e.UsableUntil().Sub(now),
			LoadTime: e.LoadTime(),
		}
		if u.refresh.Decide(reading) == policy.Serve {
			return e.Value(), nil
		}
	}
	return u.load(ctx, key)
}

func (u *unprotected) load(ctx context.Context, key string) (Answer, error) {
	began := tier.Now()
	answer, err := u.origin.Query(ctx, key)
	if err != nil {
		return Answer{}, err
	}
	life, now := u.life.Value(0, 0.5), tier.Now()
	e := tier.NewEntry(answer, tier.Meta{
		LoadedAt:    began,
		FreshUntil:  began.Add(life.Fresh),
		UsableUntil: began.Add(life.Usable),
		LoadTime:    now.Sub(began),
	})
	return answer, u.store.Set(ctx, key, e, e.UsableUntil().Sub(now))
}

func (u *unprotected) warm(ctx context.Context, key string) error {
	_, err := u.load(ctx, key)
	return err
}

func (u *unprotected) close(context.Context) error { return u.store.Close() }
