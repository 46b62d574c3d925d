package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

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
	}
	d.checkPrefixes(doc)
}

// broken notes that a rule is broken at the field of a mapping.
func (d *decoder) broken(at *node, key, path, problem string) {
	n := at.child(key)
	text := ""
	if n == nil {
		n = at
	} else if n.isScalar() {
		text = n.raw
		if key == "url" || key == "key" {
			text = ""
		}
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
		if t.TTL.given && c.Lifetime.TTL.given && t.TTL.Duration > c.Lifetime.TTL.Duration {
			d.broken(t.at, "ttl", at, fmt.Sprintf("longer than the lifetime's ttl, %s: want less, or nothing, which lets entries stay as long as they may be used", c.Lifetime.TTL.show()))
		}
		for j := range i {
			upper := &c.Tiers[j]
			if upper.TTL.given && t.TTL.given && t.TTL.Duration < upper.TTL.Duration {
				d.broken(t.at, "ttl", at, fmt.Sprintf("shorter than that of %s above it, %s: what has ended below would be served from above", upper.Name, upper.TTL.show()))
				break
			}
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
	if t.URL.given() {
		if problem := urlProblem(t.URL.reveal()); problem != "" {
			d.broken(t.at, "url", path, problem)
		}
	}
	if t.MinSize.given && t.Compression.MinSize.given {
		d.broken(t.at, "min_size", path, "is in compression too: want one of them")
	}
	if t.Encryption.at != nil {
		d.checkEncryption(&t.Encryption, path+".encryption")
	}
	if len(t.Servers) > 0 {
		for i, s := range t.Servers {
			if slices.Contains(t.Servers[:i], s) {
				d.broken(t.at, "servers", path, "names one server twice")
			} else if s != "" && !strings.Contains(string(s), ":") && !strings.Contains(string(s), "/") {
				d.broken(t.at, "servers", path, "a server without its port: want host:port, such as cache-1:11211")
			}
		}
	}
	if t.Prefix != "" && t.Backend == "memcached" && (len(t.Prefix) > 100 || strings.ContainsFunc(string(t.Prefix), func(r rune) bool { return r <= ' ' || r > '~' })) {
		d.broken(t.at, "prefix", path, "memcached takes no such prefix: want at most 100 printable ASCII characters without spaces")
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
	if t.Cost.given {
		switch {
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
	one, many := e.at.child("key") != nil, e.at.child("keys") != nil
	switch {
	case one && many:
		d.broken(e.at, "keys", path, "both key and keys are there: want one of them")
	case !one && !many:
		d.broken(e.at, "key", path, "is missing: want key, or keys for rotation")
	}
	seen := make(map[string]bool)
	for i, key := range append(slices.Clone(e.Keys), e.Key) {
		if !key.given() {
			continue
		}
		k, err := codec.ParseKey(key.reveal())
		field := "key"
		if i < len(e.Keys) {
			field = "keys"
		}
		switch {
		case err != nil:
			d.broken(e.at, field, path, "not a key: want 32 bytes as base64 or hex, as from \"openssl rand -base64 32\"")
		case seen[string(k)]:
			d.broken(e.at, field, path, "names one key twice")
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
	if v, ok := s.(policy.Validator); ok && c.Lifetime.TTL.given {
		if err := v.Validate(c.Lifetime.lifetime()); err != nil {
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
	if b.Initial.given && b.Max.given && b.Initial.Duration > b.Max.Duration {
		d.broken(b.at, "initial", path+".backoff", fmt.Sprintf("longer than max, %s", b.Max.show()))
	}
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
				if !sameServer(t, other.t) || t.place() == "" {
					continue
				}
				a, b := string(t.Prefix), string(other.t.Prefix)
				if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
					d.broken(t.at, "prefix", path, fmt.Sprintf("%s keeps its entries in the same place under %q, and of two prefixes none may begin with the other: give each cache one of its own, such as \"products:\"", other.where, b))
				}
			}
			all = append(all, seen{path, t})
		}
	}
}

func sameServer(a, b *tierSpec) bool { return a.Backend == b.Backend && a.place() == b.place() }

// place tells which database a tier writes to, of those that we know to tell apart.
func (t *tierSpec) place() string {
	switch {
	case t.URL.given():
		u, err := url.Parse(t.URL.reveal())
		if err != nil {
			return ""
		}
		return u.Host + u.Path + u.Query().Get("db")
	case len(t.Servers) > 0:
		s := slices.Clone(t.Servers)
		slices.Sort(s)
		return fmt.Sprint(s)
	default:
		return ""
	}
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
	defer func() {
		if p := recover(); p != nil { // of somebody's registered
			err = fmt.Errorf("the policy %s panicked", r.Policy)
		}
	}()
	switch r.Policy {
	case "":
		return policy.Fixed{}, nil
	case "xfetch":
		return policy.XFetch{Beta: r.Beta.f}, nil
	}
	s, err = registry.policy(string(r.Policy))(Params{r.Options})
	if err == nil && s == nil {
		err = fmt.Errorf("the policy %s made none", r.Policy)
	}
	return s, err
}

const (
	manyEntries = 1000        // above it entries that end together are felt
	slowLoad    = time.Second // what may take longer is a slow origin
)
