package memcached_test

import (
	"fmt"
	"time"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// A tier over two servers, as the lowest one of a cache.
func Example() {
	store, err := memcached.Open(memcached.Options{
		Servers: []string{"cache-1.internal:11211", "cache-2.internal:11211"},
		Prefix:  "products:",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	type Product struct{ Name string }
	l3 := tier.Tier[string, Product]{
		Name:    "l3",
		Store:   tier.Encode[string, Product](store, codec.JSON[Product]()),
		Timeout: 50 * time.Millisecond,
	}
	fmt.Println(l3.Name, store)
	// Output: l3 memcached(prefix "products:")
}
