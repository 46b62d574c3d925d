package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

func (b *busSpec) publishes() bool { return b.Kind == "pubsub" || b.Kind == "both" }

func (b *busSpec) tracks() bool { return b.Kind == "tracking" || b.Kind == "both" }

// checkBus looks for what keeps a bus from working, or would have no meaning.
func (d *decoder) checkBus(c *cacheSpec, path string) {
	b := &c.Bus
	if b.at == nil || b.Kind == "" {
		return
	}
	if !slices.ContainsFunc(c.Tiers, func(t tierSpec) bool { return d.registry.kindOf(string(t.Backend)) == "memory" }) {
		d.broken(c.at, "bus", path, "has nothing to drop: no tier keeps entries in memory")
		return
	}
	at := path + ".bus"
	if b.at.kind == mapNode {
		d.checkURL(b.at, &b.URL, at)
		for key, given := range map[string]bool{"url": b.URL.given(), "channel": b.Channel != "", "heartbeat": b.Heartbeat.given} {
			if given && !b.publishes() {
				d.broken(b.at, key, at, "is of pubsub: leave it out, or have the kind both")
			}
		}
	}
	if b.Heartbeat.given && (b.Heartbeat.Duration < time.Millisecond || b.Heartbeat.Duration > time.Hour) {
		d.broken(b.at, "heartbeat", at, "want 1ms to 1h")
	}
	if b.publishes() && !b.URL.given() && c.redis() == nil {
		d.broken(c.at, "bus", path, "needs a Redis: give it a url, or the cache a tier of redis")
	}
	if b.tracks() {
		d.checkTracking(c, path)
	}
}

func (d *decoder) checkTracking(c *cacheSpec, path string) {
	for i := range c.Tiers {
		t := &c.Tiers[i]
		switch kind := d.registry.kindOf(string(t.Backend)); {
		case kind == "memory" || kind == "": // the latter is at fault already
			continue
		case t.Backend != "redis":
			if kind == "bytes" && t.Backend == "memcached" {
				d.broken(c.at, "bus", path, fmt.Sprintf("tracking is told by the first shared tier, and %s of memcached cannot tell: want redis there, or pubsub", t.Name))
			}
			return
		case t.URL.given():
			if u, err := url.Parse(t.URL.reveal()); err == nil && strings.HasSuffix(u.Scheme, "+cluster") && readsReplicas(u.Query()) {
				d.broken(c.at, "bus", path, "a Cluster whose replicas are read cannot tell of changes in time: leave read_only, route_by_latency and route_randomly out of the url, or want pubsub")
			}
			return
		default:
			return
		}
	}
	d.broken(c.at, "bus", path, "tracking needs a tier of redis that tells")
}

// readsReplicas reports whether the parameters of a Cluster's URL have replicas read.
func readsReplicas(q url.Values) bool {
	for _, param := range []string{"read_only", "route_by_latency", "route_randomly"} {
		if on, err := strconv.ParseBool(q.Get(param)); on && err == nil {
			return true
		}
	}
	return false
}

// redis returns the first tier of Redis, or nil.
func (c *cacheSpec) redis() *tierSpec {
	for i := range c.Tiers {
		if c.Tiers[i].Backend == "redis" {
			return &c.Tiers[i]
		}
	}
	return nil
}

// open returns the bus, or nil where there is none, which the cache is to own.
func (b *busSpec) open(c *cacheSpec) (tier.Bus, error) {
	if !b.publishes() {
		return nil, nil
	}
	u := b.URL
	if !u.given() {
		u = c.redis().URL
	}
	bus, err := redis.OpenBus(u.reveal(), redis.BusOptions{})
	if err != nil { // not a nil *redis.Bus
		return nil, err
	}
	return bus, nil
}

func (b *busSpec) options() coordinator.BusOptions {
	o := coordinator.BusOptions{
		Channel:   string(b.Channel),
		Heartbeat: b.Heartbeat.Duration,
		Clamp:     b.Clamp.Duration,
		Queue:     int(b.Queue.n),
		Owned:     true,
	}
	if o.Clamp == policy.Forever {
		o.Clamp = -1
	}
	return o
}
