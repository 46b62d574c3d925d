package tier_test

import (
	"context"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/tier"
)

func TestPair(t *testing.T) {
	m := tier.Meta{LoadedAt: 1, FreshUntil: 2, UsableUntil: 3, LoadTime: 4, Tags: []string{"tag"}, Validator: "v"}
	e := tier.NewEntry("value", m)
	for name, p := range map[string]*tier.Pair[int, string]{
		"NewPair": tier.NewPair(7, "value", m),
		"PairOf":  tier.PairOf(7, e),
	} {
		if p.Key() != 7 || p.Entry().Value() != "value" || p.Entry().Validator() != "v" || p.Entry().LoadTime() != 4 {
			t.Errorf("%s: %v: %+v", name, p.Key(), p.Entry().Meta())
		}
		if p.Capped(3) != p {
			t.Errorf("%s: Capped at its own end makes a copy", name)
		}
		c := p.Capped(2)
		if c == p || c.Key() != 7 || c.Entry().UsableUntil() != 2 || c.Entry().FreshUntil() != 2 || p.Entry().UsableUntil() != 3 {
			t.Errorf("%s: capped at 2: %v: %+v, of %+v", name, c.Key(), c.Entry().Meta(), p.Entry().Meta())
		}
	}
	if e := (*tier.Pair[int, string])(nil).Entry(); e != nil {
		t.Errorf("the entry of no pair is %v", e)
	}
	if p := tier.NewPair(7, "", tier.Meta{Absent: true}); !p.Entry().Absent() {
		t.Error("an absence is lost")
	}
}

// counting is a store that counts what is set, by a method beside those it has embedded.
type counting struct {
	*lru.Store[string, int]
	sets int
}

func (c *counting) Set(ctx context.Context, key string, e *tier.Entry[int], ttl time.Duration) error {
	c.sets++
	return c.Store.Set(ctx, key, e, ttl)
}

// byValue cannot be compared.
type byValue struct {
	*lru.Store[string, int]
	_ []int
}

// A wrapper that embeds a store that keeps pairs has its methods, but they would pass by
// what the wrapper does.
func TestAsPairStoreSeesThroughWrappers(t *testing.T) {
	s := lru.New[string, int](10)
	if p, ok := tier.AsPairStore[string, int](s); !ok || p != tier.PairStore[string, int](s) {
		t.Errorf("AsPairStore of a store that keeps pairs: %v, %v", p, ok)
	}
	for _, wrapper := range []tier.Store[string, int]{&counting{Store: s}, byValue{Store: s}, struct{ tier.Store[string, int] }{s}} {
		if _, ok := tier.AsPairStore(wrapper); ok {
			t.Errorf("AsPairStore of %T passes by what it does", wrapper)
		}
	}
}

// uncomparable is a store that keeps pairs, as a value that cannot be compared.
type uncomparable struct {
	*lru.Store[string, int]
	_ []int
}

func (u uncomparable) Itself() tier.Store[string, int] { return u }

// around can be compared unless what it holds cannot.
type around struct {
	tier.PairStore[string, int]
}

func (a around) Itself() tier.Store[string, int] { return a }

func TestAsPairStoreOfAValueThatCannotBeCompared(t *testing.T) {
	kept := uncomparable{Store: lru.New[string, int](10)}
	for _, store := range []tier.Store[string, int]{kept, around{kept}} {
		if _, ok := tier.AsPairStore(store); ok {
			t.Errorf("%T: a store that cannot be told from what embeds it is taken for one that keeps pairs", store)
		}
	}
	if _, ok := tier.AsPairStore[string, int](around{kept.Store}); !ok {
		t.Error("a value that can be compared is not taken for a store that keeps pairs")
	}
}
