package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// Spread is the lives that a cache has given to keys which were written together.
type Spread struct {
	Keys int
	// Least and Most are the shortest and the longest.
	Least, Most time.Duration
	// Tenths counts them in ten equal parts of TTL ± 10 %.
	Tenths [10]int
}

// NewSpread writes so many keys into a cache of the TTL and jitter, and looks at what
// its store then holds.
func NewSpread(ctx context.Context, keys int, ttl time.Duration, jitter float64) (s Spread, err error) {
	store := storetest.NewMap[int, int]()
	c, err := coordinator.New(coordinator.Options[int, int]{
		Name:     "lab",
		Tiers:    []tier.Tier[int, int]{{Name: "l1", Store: store}},
		Lifetime: policy.Lifetime{TTL: ttl, Jitter: jitter},
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return Spread{}, fmt.Errorf("spread of jitter %v: %w", jitter, err)
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	for k := range keys {
		if err := c.Set(ctx, k, k); err != nil {
			return Spread{}, fmt.Errorf("spread of jitter %v: %w", jitter, err)
		}
	}
	least, band := ttl-ttl/10, ttl/5
	for _, e := range store.Entries() {
		life := e.FreshUntil().Sub(e.LoadedAt())
		if s.Keys == 0 || life < s.Least {
			s.Least = life
		}
		s.Most = max(s.Most, life)
		s.Keys++
		tenth := int(10 * float64(life-least) / float64(band))
		s.Tenths[min(max(tenth, 0), 9)]++
	}
	return s, nil
}
