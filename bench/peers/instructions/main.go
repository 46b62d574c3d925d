// Command instructions does one operation of Terrace in memory a number of times, and
// nothing else, so that .ci/instructions can count what it takes.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// keys is how many there are. They are asked for in turn.
const keys = 1000

// operations are what can be counted. Each makes what does it to the i-th key.
var operations = map[string]func() func(i int){
	"hit-sieve": func() func(int) { return get(textKeys(), sieve.New[string, *int](2*keys)) },
	"hit-lru":   func() func(int) { return get(textKeys(), lru.New[string, *int](2*keys)) },
	"hit-int":   func() func(int) { return get(intKeys(), sieve.New[int, *int](2*keys)) },
	// A small first tier has forgotten a key when its turn comes again.
	"promote": func() func(int) { return get(textKeys(), sieve.New[string, *int](keys/20)) },
	"set": func() func(int) {
		c, all := open(textKeys(), sieve.New[string, *int](2*keys)), textKeys()
		v := new(int)
		return func(i int) { check(c.Set(context.Background(), all[i], v)) }
	},
}

func main() {
	if len(os.Args) == 3 {
		n, err := strconv.Atoi(os.Args[2])
		if open, ok := operations[os.Args[1]]; ok && err == nil && n >= 0 {
			repeat(n, open())
			return
		}
	}
	var names []string
	for name := range operations {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(os.Stderr, "usage: instructions %s TIMES\n", strings.Join(names, "|"))
	os.Exit(2)
}

func repeat(n int, do func(i int)) {
	at := 0
	for range n {
		do(at)
		if at++; at == keys {
			at = 0
		}
	}
}

// open returns a cache that holds all keys in its second tier, and in its first where
// they have room.
func open[K comparable](all []K, l1 tier.Store[K, *int]) *coordinator.Cache[K, *int] {
	c, err := coordinator.New(coordinator.Options[K, *int]{
		Tiers: []tier.Tier[K, *int]{
			{Name: "l1", Store: l1},
			{Name: "l2", Store: sieve.New[K, *int](2 * keys)},
		},
		Lifetime: policy.Lifetime{TTL: 24 * time.Hour, Jitter: 0.1},
		Refresh:  policy.XFetch{},
		Load:     func(context.Context, K) (*int, error) { return new(int), nil },
	})
	check(err)
	for _, key := range all {
		_, err := c.Get(context.Background(), key)
		check(err)
	}
	return c
}

func get[K comparable](all []K, l1 tier.Store[K, *int]) func(i int) {
	c := open(all, l1)
	return func(i int) {
		_, err := c.Get(context.Background(), all[i])
		check(err)
	}
}

func textKeys() []string {
	all := make([]string, keys)
	for i := range all {
		all[i] = fmt.Sprintf("key-%012d", i)
	}
	return all
}

func intKeys() []int {
	all := make([]int, keys)
	for i := range all {
		all[i] = i
	}
	return all
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
