package config

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier/codec"
)

// The rules that one field alone cannot break. Each looks only at fields that are
// there and not at fault themselves.

// evictionsOf are the evictions that a backend in memory has; its own comes first.
var evictionsOf = map[string][]string{
	"ristretto": {"tinylfu"},
	"otter":     {"w-tinylfu"},
	"sieve":     {"sieve"},
}

// countsBytes are the evictions that can bound memory.
var countsBytes = []string{"tinylfu", "w-tinylfu"}

func (d *decoder) check(doc *documentSpec) {
	for _, name := range sortedKeys(doc.Caches) {
		c := doc.Caches[name]
		path := joinPath("caches", name)
		d.checkTiers(c, path)
		d.checkLifetime(c, path)
		d.checkRefresh(c, path)
		d.checkBackoff(c, path)
		d.checkLease(c, path)
		d.checkBus(c, path)
	}
	d.checkPrefixes(doc)
}

// broken notes that a rule is broken at the field of a mapping.
func (d *decoder) broken(at *node, key, path, problem string) {
	n := at.child(key)
	text := ""
	switch {
	case n == nil:
		n = at
	case !n.isScalar():
	case key == "url" || key == "key" || key == "keys":
		text = variablesOf(n.raw)
	default:
		text = masked(n.raw)
	}
	d.fault(n, joinPath(path, key), text, problem).rule = true
}

func (d *decoder) checkTiers(c *cacheSpec, path string) {
	names := make(map[string]*tierSpec)
	for i := range c.Tiers {
		t := &c.Tiers[i]
		if t.at == nil || t.at.kind != mapNode {
			continue
		}
		at := t.path(path, i)
		if first := names[string(t.Name)]; t.Name != "" && first != nil {
			d.broken(t.at, "name", at, fmt.Sprintf("the tier in line %d has this name already", first.at.child("name").line))
		} else {
			names[string(t.Name)] = t
		}
		d.checkTier(t, at)
		d.checkTierTTL(c, i, at)
	}
}

// checkTierTTL compares a tier's ttl with the lifetime and the tiers above it. In memory
// nothing needs to stay longer than it is fresh: other tiers keep what may be served
// stale, or the ttl is left out.
func (d *decoder) checkTierTTL(c *cacheSpec, i int, at string) {
	t, l := &c.Tiers[i], &c.Lifetime
	if !t.TTL.given || !l.TTL.given {
		return
	}
	shared := d.registry.kindOf(string(t.Backend)) != "memory"
	switch {
	case shared && t.TTL.Duration > c.Lifetime.lifetime().Longest():
		d.broken(t.at, "ttl", at, "longer than any entry lives: want less, or nothing, which lets entries stay as long as they may be used")
		return
	case !shared && t.TTL.Duration > l.TTL.Duration:
		d.broken(t.at, "ttl", at, fmt.Sprintf("longer than the lifetime's ttl, %s: want less, or nothing, which lets entries stay as long as they may be used", l.TTL.show()))
		return
	}
	for j := range i {
		switch upper := &c.Tiers[j]; {
		case upper.TTL.given && t.TTL.Duration < upper.TTL.Duration:
			d.broken(t.at, "ttl", at, fmt.Sprintf("shorter than that of %s above it, %s: what has ended below would be served from above", upper.Name, upper.TTL.show()))
			return
		case !upper.TTL.given && shared && t.TTL.Duration < l.TTL.Duration:
			d.broken(t.at, "ttl", at, fmt.Sprintf("shorter than what %s above it keeps, the lifetime's ttl of %s: what has ended below would be served from above", upper.Name, l.TTL.show()))
			return
		}
	}
}

// path returns where a tier is.
func (t *tierSpec) path(cache string, i int) string {
	if t.Name == "" {
		return fmt.Sprintf("%s.tiers[%d]", cache, i)
	}
	return cache + ".tiers." + string(t.Name)
}

func (d *decoder) checkTier(t *tierSpec, path string) {
	if d.registry.kindOf(string(t.Backend)) == "memory" {
		d.checkMemory(t, path)
	}
	d.checkURL(t.at, &t.URL, path)
	if t.MinSize.given && t.Compression.MinSize.given {
		d.broken(t.at, "min_size", path, "is in compression too: want one of them")
	}
	if err := t.compression().Validate(); err != nil {
		d.broken(t.at, "compression", path, err.Error())
	}
	if t.Encryption.at != nil {
		d.checkEncryption(&t.Encryption, path+".encryption")
	}
	d.checkServers(t, path)
	if t.Prefix != "" && t.Backend == "memcached" && (len(t.Prefix) > 100 || strings.ContainsFunc(string(t.Prefix), func(r rune) bool { return r <= ' ' || r > '~' })) {
		d.broken(t.at, "prefix", path, "memcached takes no such prefix: want at most 100 printable ASCII characters without spaces")
	}
}

const mostMemcached = 1 << 30 // the largest value that memcached can be told to take

func (d *decoder) checkServers(t *tierSpec, path string) {
	if t.Backend == "memcached" && t.MaxValueSize.n > mostMemcached {
		d.broken(t.at, "max_value_size", path, "more than memcached takes: want at most 1GiB")
	}
	list := t.at.child("servers")
	for i, s := range t.Servers {
		if s == "" {
			continue // at fault already
		}
		host, port, ok := strings.Cut(string(s), ":")
		at := fmt.Sprintf("%s.servers[%d]", path, i)
		wrong := func(problem string) { d.fault(list.items[i], at, masked(list.items[i].raw), problem).rule = true }
		switch {
		case slices.Contains(t.Servers[:i], s):
			wrong("is there already")
		case strings.Contains(string(s), "://") || strings.Contains(string(s), "@"):
			wrong("not a URL: want host:port, such as cache-1:11211")
		case strings.HasPrefix(string(s), "/"):
			// a socket
		case !ok || host == "" || port == "":
			wrong("want host:port, such as cache-1:11211, or the path of a socket")
		}
	}
}

func (d *decoder) checkMemory(t *tierSpec, path string) {
	eviction := t.eviction()
	if allowed := evictionsOf[string(t.Backend)]; t.Eviction != "" && allowed != nil && !slices.Contains(allowed, eviction) {
		d.broken(t.at, "eviction", path, fmt.Sprintf("the backend %s evicts by %s alone: want that, or the backend memory, which has every eviction", t.Backend, oneOf(allowed)))
		return
	}
	if t.Capacity.bytes > 0 && !slices.Contains(countsBytes, eviction) {
		d.broken(t.at, "capacity", path, fmt.Sprintf("%s counts entries: want a number of them, such as 10_000, or the eviction %s, which can count memory", eviction, oneOf(countsBytes)))
	}
	if t.Options != nil && d.registry.isBuiltInEviction(eviction) {
		d.broken(t.at, "options", path, "are for registered evictions: "+eviction+" has none")
	}
	if t.Cost.given {
		switch {
		case eviction == "w-tinylfu" && t.Cost.n > math.MaxUint32:
			d.broken(t.at, "cost", path, "w-tinylfu keeps no entry of 4GiB or more")
		case t.Capacity.entries > 0:
			d.broken(t.at, "cost", path, "has no meaning where the capacity counts entries: leave it out, or give the capacity as memory, such as 256MiB")
		case t.Capacity.bytes > 0 && t.Cost.n > t.Capacity.bytes:
			d.broken(t.at, "cost", path, fmt.Sprintf("more than the capacity, %s: nothing would ever be kept", t.Capacity.show()))
		}
	}
}

// eviction returns the name of the eviction that the tier runs.
func (t *tierSpec) eviction() string {
	switch {
	case t.Eviction != "":
		return string(t.Eviction)
	case evictionsOf[string(t.Backend)] != nil:
		return evictionsOf[string(t.Backend)][0]
	default:
		return "lru"
	}
}

// checkURL checks the field url of a mapping, if it is there.
func (d *decoder) checkURL(at *node, u *secret, path string) {
	if !u.given() {
		return
	}
	if problem := urlProblem(u.reveal()); problem != "" {
		d.broken(at, "url", path, problem)
	} else if err := redis.CheckURL(u.reveal()); err != nil {
		d.broken(at, "url", path, strings.TrimPrefix(err.Error(), "terrace/redis: open: "))
	}
}

// urlProblem says what is wrong with a URL, without quoting it.
func urlProblem(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "not a URL: characters such as / : @ # ? % in a user or password must be percent-encoded"
	case !slices.Contains([]string{"redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}, u.Scheme):
		return "not a URL of Redis: want it to begin with redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"
	case u.Host == "" && u.Scheme != "unix":
		return "a URL without a host: want redis://host:port/database"
	}
	return ""
}

func (d *decoder) checkEncryption(e *encryptionSpec, path string) {
	if e.at.kind != mapNode {
		return
	}
	seen := make(map[string]bool)
	for i, key := range append(slices.Clone(e.Keys), e.Key) {
		if !key.given() {
			continue
		}
		n, at := e.at.child("key"), path+".key"
		if i < len(e.Keys) {
			n, at = e.at.child("keys").items[i], fmt.Sprintf("%s.keys[%d]", path, i)
		}
		k, err := codec.ParseKey(key.reveal())
		switch {
		case err != nil:
			d.fault(n, at, variablesOf(n.raw), "not a key: want 32 bytes as base64 or hex, as from \"openssl rand -base64 32\"").rule = true
		case seen[string(k)]:
			d.fault(n, at, variablesOf(n.raw), "is there already").rule = true
		}
		seen[string(k)] = true
	}
}

// all returns the keys, the one that encrypts first.
func (e *encryptionSpec) all() [][]byte {
	var keys [][]byte
	for _, key := range append(slices.Clone(e.Keys), e.Key) {
		if key.given() {
			k, _ := codec.ParseKey(key.reveal()) // checked
			keys = append(keys, k)
		}
	}
	return keys
}

func (d *decoder) checkLifetime(c *cacheSpec, path string) {
	l := c.Lifetime
	if l.at == nil || l.at.kind != mapNode {
		return
	}
	if l.Absent.given && l.TTL.given && l.Absent.Duration > l.TTL.Duration {
		d.broken(l.at, "absent", path+".lifetime", fmt.Sprintf("longer than ttl, %s: what is not there would be believed longer than what is", l.TTL.show()))
	}
	if l.TTL.given && l.TTL.Duration == policy.Forever && l.Jitter.f > 0 {
		d.broken(l.at, "jitter", path+".lifetime", "a ttl of forever does not vary: leave jitter out")
	}
}

func (d *decoder) checkRefresh(c *cacheSpec, path string) {
	r := c.Refresh
	if r.at == nil || r.at.kind != mapNode || r.Policy == "" {
		return
	}
	if r.Options != nil && slices.Contains([]string{"fixed", "swr", "xfetch"}, string(r.Policy)) {
		d.broken(r.at, "options", path+".refresh", "are for registered policies; xfetch has beta, and the stale window is lifetime.stale_while_revalidate")
		return
	}
	s, err := r.strategy(d.registry)
	if err != nil {
		d.broken(r.at, "policy", path+".refresh", err.Error())
		return
	}
	window := c.Lifetime.at.child("stale_while_revalidate")
	if window != nil && !c.Lifetime.StaleWhileRevalidate.given {
		return // at fault itself
	}
	if v, ok := s.(policy.Validator); ok && c.Lifetime.TTL.given {
		_, err := safely("the policy "+string(r.Policy), func() (struct{}, error) { return struct{}{}, v.Validate(c.Lifetime.lifetime()) })
		if err != nil {
			problem := err.Error()
			if r.Policy == "swr" {
				problem = "needs lifetime.stale_while_revalidate, the time for which stale values may be served"
			}
			d.broken(r.at, "policy", path+".refresh", problem)
		}
	}
}

func (d *decoder) checkBackoff(c *cacheSpec, path string) {
	b := c.Backoff
	if b.at == nil || b.at.kind != mapNode {
		return
	}
	if err := b.backoff().Validate(); err != nil {
		key := "max"
		if !b.Max.given {
			key = "initial"
		}
		d.broken(b.at, key, path+".backoff", err.Error())
	}
}

func (d *decoder) checkLease(c *cacheSpec, path string) {
	if !c.Lease.Life.given {
		return
	}
	if c.Lease.Life.Duration < coordinator.LeastLeaseLife {
		d.broken(c.at, "lease", path, fmt.Sprintf("shorter than some round trips take: want at least %v", coordinator.LeastLeaseLife))
	}
	for i := range c.Tiers {
		if d.registry.kindOf(string(c.Tiers[i].Backend)) != "memory" {
			return
		}
	}
	d.broken(c.at, "lease", path, "needs a tier that processes share, such as redis or memcached")
}

// checkPrefixes looks for caches that would take each other's entries for their own.
func (d *decoder) checkPrefixes(doc *documentSpec) {
	type seen struct {
		where string
		t     *tierSpec
	}
	var all []seen
	for _, name := range sortedKeys(doc.Caches) {
		for i := range doc.Caches[name].Tiers {
			t := &doc.Caches[name].Tiers[i]
			if d.registry.kindOf(string(t.Backend)) != "bytes" || t.at == nil {
				continue
			}
			path := t.path(joinPath("caches", name), i)
			for _, other := range all {
				if !sameServer(t, other.t) {
					continue
				}
				a, b := string(t.Prefix), string(other.t.Prefix)
				if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
					d.broken(t.at, "prefix", path, fmt.Sprintf("%s keeps its entries in the same place under %q, and of two prefixes none may begin with the other: give each cache one of its own, such as \"products:\"", other.where, b))
					break
				}
			}
			all = append(all, seen{path, t})
		}
	}
}

// sameServer reports whether two tiers write to one database, as far as can be told.
func sameServer(a, b *tierSpec) bool {
	switch {
	case a.Backend != b.Backend:
		return false
	case a.Backend == "redis":
		return a.URL.given() && b.URL.given() && database(a.URL.reveal()) == database(b.URL.reveal())
	case a.Backend == "memcached":
		return slices.ContainsFunc(a.Servers, func(s text) bool { return slices.Contains(b.Servers, s) })
	default:
		return false
	}
}

// database tells the database of a URL from others.
func database(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	if u.Scheme == "unix" {
		return u.Path + "#" + cmp.Or(u.Query().Get("db"), "0")
	}
	return strings.ToLower(u.Hostname()) + ":" + cmp.Or(u.Port(), "6379") + "#" + cmp.Or(strings.Trim(u.Path, "/"), u.Query().Get("db"), "0")
}

func (l *lifetimeSpec) lifetime() policy.Lifetime {
	return policy.Lifetime{
		TTL:                  l.TTL.Duration,
		Jitter:               l.Jitter.f,
		StaleWhileRevalidate: l.StaleWhileRevalidate.Duration,
		StaleIfError:         l.StaleIfError.Duration,
		Absent:               l.Absent.Duration,
	}
}

// strategy makes the refresh policy.
func (r *refreshSpec) strategy(registry *Registry) (s policy.Strategy, err error) {
	switch r.Policy {
	case "":
		return policy.Fixed{}, nil
	case "xfetch":
		return policy.XFetch{Beta: r.Beta.f}, nil
	}
	s, err = safely("the policy "+string(r.Policy), func() (policy.Strategy, error) {
		return registry.policy(string(r.Policy))(Params{r.Options})
	})
	if err == nil && isNil(s) {
		err = fmt.Errorf("the policy %s made none", r.Policy)
	}
	return s, err
}

const (
	manyEntries = 1000        // above it entries that end together are felt
	slowLoad    = time.Second // what may take longer is a slow origin
)
