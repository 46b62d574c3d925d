package redis_test

import (
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

type product struct{ Name string }

func ExampleNew() {
	client := goredis.NewClient(&goredis.Options{Addr: "redis.internal:6379"})
	defer client.Close()

	l3 := tier.Tier[string, product]{
		Name:    "l3",
		Store:   tier.Encode[string, product](redis.New(client), codec.JSON[product]()),
		Timeout: 50 * time.Millisecond,
	}
	fmt.Println(l3.Name)
	// Output: l3
}

func ExampleOpen() {
	store, err := redis.Open("redis+sentinel://cache:password@sentinel-1:26379/2?master_name=main&addr=sentinel-2:26379",
		redis.Options{Prefix: "products:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close() // and with it the client
	fmt.Println(store)
	// Output: redis(prefix "products:")
}
