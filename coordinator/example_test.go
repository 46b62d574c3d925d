package coordinator_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

type product struct{ Name string }

// loadProduct asks the origin: a database, another service.
func loadProduct(_ context.Context, sku string) (product, error) {
	if sku == "sku-0" {
		return product{}, tier.ErrAbsent // there is none, which is cached too
	}
	return product{Name: "lamp"}, nil
}

func Example() {
	ctx := context.Background()
	products, err := coordinator.New(coordinator.Options[string, product]{
		Name: "products",
		Tiers: []tier.Tier[string, product]{
			{Name: "l1", Store: lru.New[string, product](10_000), TTL: 30 * time.Second},
			{Name: "l2", Store: ristretto.New(ristretto.Options[string, product]{MaxCost: 64 << 20})},
		},
		Lifetime: policy.Lifetime{TTL: 5 * time.Minute, Jitter: 0.1, StaleIfError: time.Hour, Absent: 5 * time.Second},
		Refresh:  policy.XFetch{},
		Load:     loadProduct,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer products.Close(ctx)

	p, err := products.Get(ctx, "sku-1") // in no tier yet: loaded, and kept in both
	fmt.Println(p.Name, err)

	r, err := products.Lookup(ctx, "sku-1") // Get that also tells from where, and how old
	fmt.Println(r.Value.Name, r.State, "from", r.Tier, err)

	_, err = products.Get(ctx, "sku-0")
	fmt.Println(err)

	// Output:
	// lamp <nil>
	// lamp fresh from l1 <nil>
	// terrace: no value for this key
}
