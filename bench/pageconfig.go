package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/terracecache/terrace/bench/internal/replay"
)

// cacheConfig writes a cache as a document of docs/configuration.md has it.
type cacheConfig struct {
	name     string
	tiers    []string // a mapping each
	lifetime string
	refresh  string
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_]+`)

func (c cacheConfig) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "caches:\n  %s:\n    tiers:\n", strings.Trim(notInNames.ReplaceAllString(c.name, "-"), "-"))
	for _, t := range c.tiers {
		fmt.Fprintf(&b, "      - %s\n", t)
	}
	fmt.Fprintf(&b, "    lifetime: {%s}\n", c.lifetime)
	if c.refresh != "" {
		fmt.Fprintf(&b, "    refresh: {%s}\n", c.refresh)
	}
	return b.String()
}

// config returns the combination under the policy as a document, on a server that
// environment variables name.
func (s *settings) config(combination, policyName string) string {
	tiers, server, _ := strings.Cut(strings.TrimSuffix(combination, ")"), "(")
	c := cacheConfig{name: combination + "-" + policyName, lifetime: "ttl: " + s.TTL.String(), refresh: "policy: " + policyName}
	for name := range strings.SplitSeq(tiers, "+") {
		switch name {
		case "l1":
			c.tiers = append(c.tiers, fmt.Sprintf("{name: l1, backend: memory, eviction: lru, capacity: %d}", s.L1Entries))
		case "l2":
			c.tiers = append(c.tiers, fmt.Sprintf("{name: l2, backend: memory, eviction: tinylfu, capacity: %d}", s.L2Entries))
		case "l3":
			if server == "memcached" || server == "" && len(s.Memcached) > 0 {
				c.tiers = append(c.tiers, `{name: l3, backend: memcached, servers: ["${MEMCACHED}"], codec: raw}`)
			} else {
				c.tiers = append(c.tiers, `{name: l3, backend: redis, url: "${REDIS_URL}", codec: raw}`)
			}
		}
	}
	if policyName == "swr" {
		c.lifetime += ", stale_while_revalidate: " + s.Stale.String()
	}
	if s.StaleIfError > 0 {
		c.lifetime += ", stale_if_error: " + s.StaleIfError.String()
	}
	if policyName == "xfetch" {
		c.refresh += fmt.Sprintf(", beta: %v", s.Beta)
	}
	return c.String()
}

// config returns the combination as a document. Sizes that are shares of a trace's keys
// are left to be filled in.
func (c traceCombination) config() string {
	out := cacheConfig{name: "replayed", lifetime: "ttl: forever"}
	for _, t := range c {
		size := fmt.Sprint(t.size.n)
		switch {
		case t.size.percent > 0:
			size = fmt.Sprintf(`"%v%% of the keys"`, t.size.percent)
		case t.size.bytes:
			size = bytesText(t.size.n)
		}
		out.tiers = append(out.tiers, fmt.Sprintf("{name: %s, backend: memory, eviction: %s, capacity: %s}",
			t.name, strings.TrimSuffix(t.policy, replay.Sharded), size))
	}
	return out.String()
}
