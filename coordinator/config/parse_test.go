package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/terracecache/terrace/coordinator/config"
)

// key is a key of 32 bytes, as base64.
const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func env(name string) (string, bool) {
	v, ok := map[string]string{
		"REDIS_URL": "redis://user:hunter2secret@localhost:6379/3",
		"CACHE_KEY": key,
		"TTL":       "7m",
		"EMPTY":     "",
		"EVIL":      "5m, jitter: 50%}\nrefresh: {policy: swr",
		"ROOM":      "500",
		"COLON":     "x:#y",
	}[name]
	return v, ok
}

const whole = `caches:
  products:
    tiers:
      - {name: l1, backend: lru, eviction: 2q, capacity: 10_000, ttl: 30s}
      - {name: l2, backend: ristretto, capacity: 256MiB}
      - name: l3
        backend: redis
        url: ${REDIS_URL}
        prefix: "products:"
        codec: json            # json | msgpack | gob | raw | registered by you
        compression: s2        # none | s2 | zstd, only above min_size
        encryption: {key: "${CACHE_KEY}"}
        timeout: 50ms
    lifetime: {ttl: 5m, jitter: 10%, stale_while_revalidate: 30s, stale_if_error: 1h, absent: 5s}
    refresh: {policy: xfetch, beta: 1}
    limits: {flights: 65536, load_timeout: 10s, background: 64}
`

func parse(t *testing.T, text string, set ...string) (*config.Document, error) {
	t.Helper()
	return config.Parse("caches.yaml", []byte(text), config.Options{Env: env, Set: set})
}

func TestParse(t *testing.T) {
	doc, err := parse(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	if w := doc.Warnings(); len(w) != 1 || w[0].Path != "caches.products.tiers.l2.ttl" {
		t.Errorf("warnings: %v, want that l2 has no bound above l3", w)
	}
	want := "products: l1 lru (2q, 10_000 entries, ttl 30s) → l2 ristretto (tinylfu, 256MiB) → l3 redis (json, s2, encrypted, timeout 50ms); " +
		"ttl 5m ± 10%, stale while revalidate 30s, stale if error 1h, absent 5s; refresh xfetch (beta 1)"
	if got := doc.String(); got != want {
		t.Errorf("String:\n%s\nwant\n%s", got, want)
	}
}

// small is a document of one tier, with fields of the tier and of the cache put in.
func small(tier, lifetime, cache string) string {
	return "caches:\n  c:\n    tiers:\n      - {name: l1, " + tier + "}\n    lifetime: {" + lifetime + "}\n" + cache
}

const (
	goodTier = "backend: lru, capacity: 100"
	goodLife = "ttl: 5m"
)

// Each fault is told with its place, the text, what is allowed, and what was meant.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string // one for each fault: parts of its line, split by |
	}{
		{"empty", "", []string{"1:1:|the document is empty"}},
		{"only a comment", "# nothing\n", []string{"the document is empty"}},
		{"no mapping", "- 1\n", []string{"1:1:|a list|caches:"}},
		{"not YAML", "caches:\n  c: [\n", []string{":|not readable as YAML"}},
		{"tab", "caches:\n\tc: 1\n", []string{"2:|not readable as YAML"}},
		{"two documents", whole + "---\ncaches: {}\n", []string{"17:|a second YAML document"}},
		{"no caches", "cache: {}\n", []string{`1:1:|"cache"|no such field|did you mean caches?`, "1:1:|caches: is missing"}},
		{"caches empty", "caches:\n", []string{"1:8:|caches: |nothing|at least one cache"}},
		{"a cache empty", "caches:\n  c:\n", []string{"2:5:|caches.c|there is nothing here: want a mapping with tiers, lifetime"}},
		{"bad cache name", "caches:\n  1a b:\n    tiers: []\n", []string{`2:3:|"1a b"|not a name`}},
		{"tiers missing", "caches:\n  c:\n    lifetime: {ttl: 1m}\n", []string{"3:5:|caches.c.tiers: is missing"}},
		{"tiers empty", "caches:\n  c:\n    tiers: []\n    lifetime: {ttl: 1m}\n", []string{"3:12:|caches.c.tiers: an empty list"}},
		{"tiers a mapping", "caches:\n  c:\n    tiers: {l1: 1}\n    lifetime: {ttl: 1m}\n", []string{"3:12:|caches.c.tiers: a mapping: want a list"}},
		{"lifetime missing", "caches:\n  c:\n    tiers: [{name: l1, backend: lru, capacity: 1}]\n", []string{"caches.c.lifetime: is missing"}},
		{"lifetime a number", "caches:\n  c:\n    tiers: [{name: l1, backend: lru, capacity: 1}]\n    lifetime: 5\n", []string{"4:15:|caches.c.lifetime: a number: want a mapping with ttl"}},

		{"bare ttl", small(goodTier+", ttl: 5", goodLife, ""), []string{`4:54:|caches.c.tiers.l1.ttl: "5": a bare number: want a time with its unit|30s`}},
		{"bare lifetime", small(goodTier, "ttl: 300", ""), []string{`caches.c.lifetime.ttl: "300": a bare number|5m`}},
		{"wrong unit", small(goodTier, "ttl: 5min", ""), []string{`"5min": want a time with its unit`}},
		{"wrong size", small("backend: ristretto, capacity: 10MB!", goodLife, ""), []string{`"10MB!": want a number of entries|256MiB`}},
		{"size in small letters", small("backend: ristretto, capacity: 256mib", goodLife, ""), []string{`"256mib": want`}},
		{"space in a size", small("backend: ristretto, capacity: 256 MiB", goodLife, ""), []string{`"256 MiB": want`}},
		{"negative ttl", small(goodTier, "ttl: -5m", ""), []string{`"-5m": want a time`}},
		{"zero ttl", small(goodTier, "ttl: 0s", ""), []string{`"0s": zero makes no sense`}},
		{"endless overflow", small(goodTier, "ttl: 999999999h", ""), []string{`"999999999h": want a time`}},
		{"days overflow", small(goodTier, "ttl: 999999999d", ""), []string{`"999999999d": want a time`}},
		{"negative capacity", small("backend: lru, capacity: -1", goodLife, ""), []string{`"-1": want a number of entries`}},
		{"zero capacity", small("backend: lru, capacity: 0", goodLife, ""), []string{`"0": want a number of entries`}},
		{"zero bytes", small("backend: ristretto, capacity: 0MiB", goodLife, ""), []string{`"0MiB": want a number of entries`}},
		{"fraction of an entry", small("backend: lru, capacity: 1.5", goodLife, ""), []string{`"1.5": want a number of entries`}},
		{"capacity missing", small("backend: lru", goodLife, ""), []string{"4:9:|caches.c.tiers.l1.capacity: is missing"}},
		{"zero flights", small(goodTier, goodLife, "    limits: {flights: 0}\n"), []string{`caches.c.limits.flights: "0": want a whole number of at least 1`}},
		{"negative background", small(goodTier, goodLife, "    limits: {background: -4}\n"), []string{`"-4": want a whole number`}},
		{"zero load timeout", small(goodTier, goodLife, "    limits: {load_timeout: 0s}\n"), []string{"zero makes no sense"}},
		{"jitter of ten", small(goodTier, "ttl: 5m, jitter: 10", ""), []string{`"10": want a share such as 10%`}},
		{"jitter of 150 %", small(goodTier, "ttl: 5m, jitter: 150%, stale_while_revalidate: 1s", ""), []string{`"150%": want a share`}},
		{"jitter of 1.5", small(goodTier, "ttl: 5m, jitter: 1.5, stale_while_revalidate: 1s", ""), []string{`"1.5": want a share`}},
		{"jitter of 1", small(goodTier, "ttl: 5m, jitter: 1", ""), []string{`"1": want a share`}},
		{"beta of zero", small(goodTier, goodLife, "    refresh: {policy: xfetch, beta: 0}\n"), []string{"want a number above 0"}},
		{"beta is text", small(goodTier, goodLife, "    refresh: {policy: xfetch, beta: often}\n"), []string{`"often": want a number above 0`}},
		{"a value of nothing", small(goodTier+", ttl: ", goodLife, ""), []string{"there is nothing here: want a time"}},
		{"yes", small(goodTier+", ttl: true", goodLife, ""), []string{`"true": YAML takes this for true or false`}},
		{"a list for a value", small(goodTier+", ttl: [1s]", goodLife, ""), []string{"a list: want a time"}},

		{"unknown field", small(goodTier+", capcity: 5", goodLife, ""), []string{`"capcity": no such field here: want one of|did you mean capacity?`}},
		{"camel case", small(goodTier, "ttl: 5m, staleWhileRevalidate: 1s", ""), []string{`"staleWhileRevalidate"|did you mean stale_while_revalidate?`}},
		{"dashes", small(goodTier, "ttl: 5m, stale-if-error: 1s", ""), []string{"did you mean stale_if_error?"}},
		{"another name", small("type: lru, backend: lru, capacity: 100", goodLife, ""), []string{`"type"|did you mean backend?`}},
		{"unknown backend", small("backend: rediss, capacity: 1", goodLife, ""), []string{`"rediss": want|memcached|did you mean redis?`}},
		{"unknown eviction", small("backend: lru, eviction: 2Q, capacity: 1", goodLife, ""), []string{`"2Q": want|did you mean 2q?`}},
		{"unknown policy", small(goodTier, goodLife, "    refresh: {policy: x-fetch}\n"), []string{`"x-fetch"|did you mean xfetch?`}},
		{"policy missing", small(goodTier, goodLife, "    refresh: {beta: 1}\n"), []string{"caches.c.refresh.policy: is missing"}},
		{"unknown codec", small("backend: memcached, servers: ['a:1'], codec: Json", goodLife, ""), []string{`"Json": want|did you mean json?`}},
		{"field of another backend", small(goodTier+", url: redis://a", goodLife, ""), []string{"caches.c.tiers.l1.url|a tier with the backend lru has no such field"}},
		{"options of nobody", small(goodTier+", options: {a: 1}", goodLife, ""), []string{"options|has no such field"}},
		{"url missing", small("backend: redis", goodLife, ""), []string{"caches.c.tiers.l1.url: is missing"}},
		{"servers missing", small("backend: memcached", goodLife, ""), []string{"caches.c.tiers.l1.servers: is missing"}},
		{"server without a port", small("backend: memcached, servers: [cache-1]", goodLife, ""), []string{`servers[0]: "cache-1": want host:port`}},
		{"server twice", small("backend: memcached, servers: ['a:1', 'a:1']", goodLife, ""), []string{`servers[1]: "a:1": is there already`}},
		{"memcached prefix", small("backend: memcached, servers: ['a:1'], prefix: 'a b'", goodLife, ""), []string{"memcached takes no such prefix"}},
		{"url of http", small("backend: redis, url: 'http://a'", goodLife, ""), []string{"not a URL of Redis"}},
		{"url without a host", small("backend: redis, url: 'redis:///1'", goodLife, ""), []string{"without a host"}},

		{"duplicate field", small(goodTier, "ttl: 5m, ttl: 6m", ""), []string{`caches.c.lifetime.ttl: "ttl": there already, in line 5`}},
		{"duplicate cache", "caches:\n  a: &a\n    tiers: [{name: l1, backend: lru, capacity: 1}]\n    lifetime: {ttl: 1m}\n  a: *a\n", []string{`5:3:|"a": there already, in line 2`}},
		{"tier name twice", "caches:\n  c:\n    tiers:\n      - {name: l1, backend: lru, capacity: 1}\n      - {name: l1, backend: lru, capacity: 2}\n    lifetime: {ttl: 1m}\n", []string{`5:16:|"l1"|the tier in line 4 has this name already`}},
		{"one prefix for two", "caches:\n  a:\n    tiers: [{name: l3, backend: redis, url: 'redis://h/1', prefix: 'p:'}]\n    lifetime: {ttl: 1m}\n  b:\n    tiers: [{name: l3, backend: redis, url: 'redis://u:pw12345@h/1', prefix: 'p:x'}]\n    lifetime: {ttl: 1m}\n", []string{"6:|caches.b.tiers.l3.prefix|caches.a.tiers.l3"}},

		{"eviction of another library", small("backend: ristretto, eviction: 2q, capacity: 1", goodLife, ""), []string{`"2q": the backend ristretto evicts by tinylfu alone|memory`}},
		{"bytes of lru", small("backend: lru, capacity: 1MiB", goodLife, ""), []string{"lru counts entries|tinylfu or w-tinylfu"}},
		{"bytes of sieve", small("backend: memory, eviction: sieve, capacity: 1MiB", goodLife, ""), []string{"sieve counts entries"}},
		{"cost of entries", small("backend: ristretto, capacity: 100, cost: 1KiB", goodLife, ""), []string{"cost|capacity counts entries"}},
		{"cost above capacity", small("backend: ristretto, capacity: 1KiB, cost: 1MiB", goodLife, ""), []string{"more than the capacity, 1KiB"}},
		{"tier longer than the lifetime", small(goodTier+", ttl: 10m", goodLife, ""), []string{`"10m": longer than the lifetime's ttl, 5m`}},
		{"below shorter than above", "caches:\n  c:\n    tiers:\n      - {name: l1, backend: lru, capacity: 1, ttl: 2m}\n      - {name: l3, backend: redis, prefix: 'a:', url: 'redis://h', ttl: 1m}\n    lifetime: {ttl: 5m}\n", []string{`5:73:|"1m": shorter than that of l1 above it, 2m`}},
		{"swr without a window", small(goodTier, goodLife, "    refresh: {policy: swr}\n"), []string{"needs lifetime.stale_while_revalidate"}},
		{"absent longer than there", small(goodTier, "ttl: 5m, absent: 10m", ""), []string{`"10m": longer than ttl, 5m`}},
		{"jitter of for ever", small(goodTier, "ttl: forever, jitter: 10%", ""), []string{"a ttl of forever does not vary"}},
		{"for ever where not", small(goodTier+", ttl: forever", goodLife, ""), []string{`"forever": want a time`}},
		{"backoff", small(goodTier, goodLife, "    backoff: {initial: 10s, max: 1s}\n"), []string{"c.backoff.max|below Initial 10s"}},
		{"options of our policy", small(goodTier, goodLife, "    refresh: {policy: fixed, options: {a: 1}}\n"), []string{"options|are for registered policies"}},

		{"variable unset", small(goodTier, "ttl: '${NOPE}'", ""), []string{`"${NOPE}": the variable NOPE is not set|${NOPE:-default}`}},
		{"no braces", small(goodTier, "ttl: $TTL", ""), []string{`"$TTL": want a time`}},
		{"a name with a dash", small(goodTier, "ttl: '${T-TL}'", ""), []string{`ttl: not ${NAME}|$$`}},
		{"braces without an end", small(goodTier, "ttl: '${TTL'", ""), []string{`ttl: not ${NAME}`}},
		{"C85: a number in quotes", small(goodTier, "ttl: '5'", ""), []string{`"5": a bare number`}},
		{"C85: a number of a variable", small(goodTier, "ttl: '${ROOM}'", ""), []string{`"${ROOM}": a bare number`}},
		{"C85: nothing in quotes", small(goodTier, "ttl: ''", ""), []string{`caches.c.lifetime.ttl: there is nothing here: want a time`}},
		{"C85: zero", small(goodTier, "ttl: 0", ""), []string{`"0": a bare number`}},
		{"C85: minus one", small(goodTier, "ttl: -1", ""), []string{`"-1": a bare number`}},
		{"C85: an exponent", small(goodTier, "ttl: 1e3", ""), []string{`"1e3": a bare number`}},
		{"variable at fault", small("backend: lru, capacity: '${EVIL}'", goodLife, ""), []string{`"${EVIL}": it holds a line break|want a number of entries`}},
		{"key too short", small("backend: memcached, servers: ['a:1'], encryption: {key: c2hvcnQ=}", goodLife, ""), []string{"not a key: want 32 bytes as base64 or hex"}},
		{"no key", small("backend: memcached, servers: ['a:1'], encryption: {}", goodLife, ""), []string{"want key, or keys"}},
		{"key and keys", small("backend: memcached, servers: ['a:1'], encryption: {key: '${CACHE_KEY}', keys: ['${CACHE_KEY}']}", goodLife, ""), []string{"both key and keys", "is there already"}},

		{"octal", small("backend: lru, capacity: 0100", goodLife, ""), []string{`"0100": YAML takes this for another number`}},
		{"hexadecimal", small(goodTier, goodLife, "    limits: {flights: 0x10}\n"), []string{`"0x10": YAML takes this`}},
		{"a tag", small("backend: lru, capacity: !foo 5", goodLife, ""), []string{"a YAML tag that means nothing here: !foo"}},
		{"a variable in braces", "caches:\n  c:\n    tiers: [{name: l1, backend: lru, capacity: 1}]\n    lifetime: {ttl: ${TTL}, jitter: 1%}\n", []string{`4:21:|in quotes: "${NAME}"`}},
		{"indentation", whole + "   broken: 1\n", []string{"17:1:|not readable as YAML"}},
		{"Redis shorter than the lifetime of l1", "caches:\n  c:\n    tiers:\n      - {name: l1, backend: lru, capacity: 1}\n      - {name: l3, backend: redis, prefix: 'a:', url: 'redis://h', ttl: 10s}\n    lifetime: {ttl: 5m}\n", []string{"shorter than what l1 above it keeps"}},
		{"Redis longer than any life", "caches:\n  c:\n    tiers:\n      - {name: l3, backend: redis, prefix: 'a:', url: 'redis://h', ttl: 2h}\n    lifetime: {ttl: 5m, stale_if_error: 1h}\n", []string{"longer than any entry lives"}},
		{"one place by two names", "caches:\n  a:\n    tiers: [{name: l3, backend: redis, url: 'redis://h', prefix: 'p:'}]\n    lifetime: {ttl: 1m}\n  b:\n    tiers: [{name: l3, backend: redis, url: 'redis://H:6379/0?pool_size=3', prefix: 'p:'}]\n    lifetime: {ttl: 1m}\n", []string{"caches.b.tiers.l3.prefix|caches.a.tiers.l3"}},
		{"one of the servers", "caches:\n  a:\n    tiers: [{name: l3, backend: memcached, servers: ['h:1', 'g:1']}]\n    lifetime: {ttl: 1m}\n  b:\n    tiers: [{name: l3, backend: memcached, servers: ['g:1']}]\n    lifetime: {ttl: 1m}\n", []string{"caches.b.tiers.l3.prefix"}},
		{"a database by name", small("backend: redis, url: 'redis://h/abc'", goodLife, ""), []string{"caches.c.tiers.l1.url: redis: invalid database number"}},
		{"an odd parameter", small("backend: redis, url: 'redis://h?foo=1'", goodLife, ""), []string{"caches.c.tiers.l1.url: "}},
		{"a value for memcached", small("backend: memcached, servers: ['a:1'], max_value_size: 1TiB", goodLife, ""), []string{"max_value_size|want at most 1GiB"}},
		{"a backoff below the default", small(goodTier, goodLife, "    backoff: {max: 100ms}\n"), []string{"caches.c.backoff.max|Initial 250ms"}},
		{"a cost that is never kept", small("backend: otter, capacity: 8GiB, cost: 5GiB", goodLife, ""), []string{"keeps no entry of 4GiB or more"}},
		{"one fault, not two", small(goodTier, "ttl: 5m, stale_while_revalidate: 30", "    refresh: {policy: swr}\n"), []string{`stale_while_revalidate: "30": a bare number`}},
		{"a control character", small(goodTier+", \"a\\nb\\e[31m\": 1", goodLife, ""), []string{"caches.c.tiers.l1.a b [31m|no such field"}},
		{"a compression that is not there", small(goodTier+", compressoin: s2", goodLife, ""), []string{"no such field here: want one of name, backend, eviction, capacity, cost, ttl"}},

		{"a lease without a shared tier", small(goodTier, goodLife, "    lease: 3s\n"), []string{"caches.c.lease|needs a tier that processes share"}},
		{"a bus without memory", small("backend: memcached, servers: ['a:1']", goodLife, "    bus: pubsub\n"), []string{"caches.c.bus|has nothing to drop"}},
		{"a bus without a Redis", small(goodTier, goodLife, "    bus: pubsub\n"), []string{"caches.c.bus|give it a url"}},
		{"a bus of no kind", small(goodTier, goodLife, "    bus: pubsup\n"), []string{"caches.c.bus|did you mean pubsub"}},
		{"a bus with a bad URL", small(goodTier, goodLife, "    bus: {kind: pubsub, url: 'http://user:hunter2@h'}\n"), []string{"caches.c.bus.url|not a URL of Redis"}},
		{"tracking without a tier", small(goodTier, goodLife, "    bus: tracking\n"), []string{"caches.c.bus|needs a tier of redis"}},
		{"tracking over memcached", small("backend: lru, capacity: 5}\n      - {name: l2, backend: memcached, servers: ['a:1']", goodLife, "    bus: tracking\n"), []string{"caches.c.bus|l2 of memcached cannot tell"}},
		{"tracking over a Cluster's replicas", small("backend: lru, capacity: 5}\n      - {name: l2, backend: redis, url: 'redis+cluster://h:1?read_only=true'", goodLife, "    bus: tracking\n"), []string{"caches.c.bus|a Cluster whose replicas are read cannot tell"}},
		{"a channel of tracking", small("backend: lru, capacity: 5}\n      - {name: l2, backend: redis, url: 'redis://h:1'", goodLife, "    bus: {kind: tracking, channel: c}\n"), []string{"caches.c.bus.channel|is of pubsub"}},
		{"a heartbeat too long", small("backend: lru, capacity: 5}\n      - {name: l2, backend: redis, url: 'redis://h:1'", goodLife, "    bus: {kind: pubsub, heartbeat: 2h}\n"), []string{"caches.c.bus.heartbeat|1ms to 1h"}},
		{"a lease too short", small("backend: memcached, servers: ['a:1']", goodLife, "    lease: {life: 1ms}\n"), []string{"caches.c.lease|want at least 50ms"}},

		{"all at once", small("backend: lru, capacity: 0, ttl: 5", "ttl: 5, jiter: 3%", "    refresh: {policy: swrr}\n    limts: {}\n"), []string{
			`4:|capacity: "0"`, `4:|ttl: "5"`, `5:|lifetime.ttl: "5"`, `5:|"jiter"|jitter`, `6:|"swrr"|did you mean swr?`, `7:5:|"limts"|limits`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(t, test.text)
			var faults config.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want faults", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(test.want) {
				t.Errorf("got %d faults, want %d:\n%v", len(lines), len(test.want), err)
			}
			for i, want := range test.want[:min(len(lines), len(test.want))] {
				for part := range strings.SplitSeq(want, "|") {
					if !strings.Contains(lines[i], part) {
						t.Errorf("fault %d: %s\nwant it to have %q", i+1, lines[i], part)
					}
				}
				if !strings.HasPrefix(lines[i], "caches.yaml:") {
					t.Errorf("no file: %s", lines[i])
				}
			}
			for _, f := range faults {
				if f.Line < 1 || f.Column < 1 {
					t.Errorf("no place: %+v", f)
				}
			}
			for _, hidden := range []string{"hunter2", "5m, jitter: 50%", key, "pw12345"} {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, faults, faults), hidden) {
					t.Errorf("%q is shown: %v", hidden, err)
				}
			}
		})
	}
}

// What a person may write in another way, and what may be left out.
func TestAlsoGood(t *testing.T) {
	for name, text := range map[string]string{
		"the least":          small(goodTier, goodLife, ""),
		"quoted":             small(`"backend": "lru", capacity: "10_000", ttl: '30s'`, `ttl: "1h30m"`, ""),
		"days":               small(goodTier, "ttl: 1d12h, jitter: 0.1, stale_if_error: 7d", ""),
		"no jitter in words": small(goodTier, "ttl: 5m, jitter: 0, stale_while_revalidate: 0s", ""),
		"variables":          small("backend: lru, capacity: '${ROOM}'", "ttl: '${TTL}', jitter: '${NOPE:-10%}', absent: '${EMPTY:-5s}'", ""),
		"decimal size":       small("backend: otter, capacity: 1.5MB", goodLife, ""),
		"any eviction":       small("backend: lru, eviction: w-tinylfu, capacity: 1GiB, cost: 2KiB", goodLife, ""),
		"for ever":           small(goodTier, "ttl: forever, stale_if_error: forever", ""),
		"anchors":            "x-life: &life {ttl: 5m, jitter: 10%}\ncaches:\n  a:\n    tiers: [{name: l1, backend: lru, capacity: 1}]\n    lifetime: *life\n  b:\n    tiers: [{name: l1, backend: lru, capacity: 1}]\n    lifetime: {<<: *life, ttl: 6m}\n",
		"compression":        small("backend: memcached, servers: ['a:1'], compression: {algorithm: zstd, min_size: 2KiB}", goodLife, ""),
		"min_size beside":    small("backend: memcached, servers: ['a:1'], compression: zstd, min_size: 2KiB", goodLife, ""),
		"a lease":            small("backend: memcached, servers: ['a:1']", goodLife, "    lease: 3s\n"),
		"a bus":              small("backend: lru, capacity: 5}\n      - {name: l3, backend: redis, url: 'redis://h:1'", goodLife, "    bus: pubsub\n"),
		"a bus elsewhere":    small(goodTier, goodLife, "    bus: {kind: pubsub, url: 'redis://h:1', channel: c, heartbeat: 1s, clamp: forever, queue: 7}\n"),
		"tracking":           small("backend: lru, capacity: 5}\n      - {name: l3, backend: redis, url: 'redis+sentinel://h:1?master_name=m'", goodLife, "    bus: {kind: tracking, clamp: 10s}\n"),
		"both":               small("backend: lru, capacity: 5}\n      - {name: l3, backend: redis, url: 'redis://h:1'", goodLife, "    bus: both\n"),
		"several keys":       small("backend: memcached, servers: ['a:1'], encryption: {keys: ['${CACHE_KEY}', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff']}", goodLife, ""),
		"beta of no use":     small(goodTier, "ttl: 5m, stale_while_revalidate: 1s", "    refresh: {policy: swr, beta: 1}\n"),
	} {
		if _, err := parse(t, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A variable is put in as text: it cannot add to the document (C88).
func TestVariables(t *testing.T) {
	if doc, err := parse(t, small("backend: memcached, servers: ['a:1'], prefix: '${NOPE:-a$$b}'", goodLife, "")); err == nil {
		t.Errorf("a $ in a default: got %v", doc)
	}
	doc, err := parse(t, small("backend: lru, capacity: 5", "ttl: '${TTL}'", ""))
	if err != nil || !strings.Contains(doc.String(), "ttl 7m") {
		t.Errorf("got %v, %v, want the variable's 7m", doc, err)
	}
	for text, want := range map[string]string{"'$$a'": "$a", "'a$$$$'": "a$$", "'$${TTL}'": "${TTL}", "'x${TTL}y${NOPE:-}'": "x7my", "'pa$$w0rd'": "pa$w0rd", "'a$HOME'": "a$HOME", "'a$'": "a$", "'${COLON}'": "x:#y"} {
		doc, err := config.Parse("", []byte(small("backend: memcached, servers: ['a:1'], prefix: "+text, goodLife, "")), config.Options{Env: env})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := config.PrefixOf(doc, "c"); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	remote := "caches:\n  c:\n    tiers:\n      - {name: l1, backend: lru, capacity: 10%s}\n      - {name: l3, backend: redis, url: 'redis://h'%s}\n    lifetime: {ttl: 5m, jitter: 10%%, stale_if_error: 1m}\n"
	for _, test := range []struct{ name, text, want string }{
		{"many without jitter", small("backend: lru, capacity: 10_000", "ttl: 5m, stale_if_error: 1m", ""), "caches.c.lifetime.jitter"},
		{"slow without a stale window", small(goodTier, goodLife, ""), "caches.c.lifetime.stale_if_error"},
		{"quick without one", small(goodTier, goodLife, "    limits: {load_timeout: 500ms}\n"), ""},
		{"few without jitter", small(goodTier, "ttl: 5m, stale_if_error: 1m", ""), ""},
		{"no cap above a shared tier", fmt.Sprintf(remote, "", ", prefix: 'a:'"), "caches.c.tiers.l1.ttl"},
		{"a cap", fmt.Sprintf(remote, ", ttl: 10s", ", prefix: 'a:'"), ""},
		{"no braces", small("backend: memcached, servers: ['a:1'], prefix: $PREFIX", "ttl: 5m, jitter: 1%, stale_if_error: 1m", ""), "caches.c.tiers[0].prefix"},
		{"no prefix", fmt.Sprintf(remote, ", ttl: 10s", ""), "caches.c.tiers.l3.prefix"},
		{"a beta of no use", small(goodTier, "ttl: 5m, stale_if_error: 1m", "    refresh: {policy: fixed, beta: 2}\n"), "caches.c.refresh.beta"},
		{"no tier keeps what is stale", small(goodTier+", ttl: 5m", "ttl: 5m, stale_if_error: 1h", ""), "caches.c.tiers"},
		{"a window under fixed", small(goodTier, "ttl: 5m, stale_while_revalidate: 30s", "    refresh: {policy: fixed}\n"), "caches.c.lifetime.stale_while_revalidate"},
		{"min_size alone", small("backend: memcached, servers: ['a:1'], min_size: 1KiB", "ttl: 5m, jitter: 1%, stale_if_error: 1m", ""), "caches.c.tiers.l1.min_size"},
		{"a smaller tier below", "caches:\n  c:\n    tiers: [{name: l1, backend: lru, capacity: 10}, {name: l2, backend: sieve, capacity: 10}]\n    lifetime: {ttl: 5m, stale_if_error: 1m}\n", "caches.c.tiers.l2.capacity"},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc, err := parse(t, test.text)
			if err != nil {
				t.Fatal(err)
			}
			w := doc.Warnings()
			switch {
			case test.want == "" && len(w) > 0:
				t.Errorf("got %v, want no warning", w)
			case test.want != "" && (len(w) != 1 || w[0].Path != test.want || w[0].Line == 0):
				t.Errorf("got %v, want one of %s", w, test.want)
			}
		})
	}
}

func TestSet(t *testing.T) {
	for _, test := range []struct{ set, want string }{
		{"products.refresh.policy=swr", "refresh swr"},
		{"caches.products.refresh.policy=fixed", "refresh fixed"},
		{"products.tiers.l1.eviction=sieve", "l1 lru (sieve, 10_000"},
		{"products.tiers.l1.capacity=500", "500 entries"},
		{"products.lifetime.ttl=${TTL}", "ttl 7m"},
	} {
		doc, err := parse(t, whole, test.set)
		if err != nil || !strings.Contains(doc.String(), test.want) {
			t.Errorf("--set %s: got %v, %v, want %q", test.set, doc, err, test.want)
		}
	}
	dotted := strings.Replace(strings.Replace(whole, "  products:", "  pro.ducts:", 1), "name: l1", "name: l.1", 1)
	if doc, err := parse(t, dotted, "pro.ducts.tiers.l.1.capacity=500"); err != nil || !strings.Contains(doc.String(), "500 entries") {
		t.Errorf("names with dots: %v, %v", doc, err)
	}
	for _, slip := range []string{"redis://:hunter2@h", "=redis://:hunter2@h"} {
		if _, err := parse(t, whole, slip); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a slip with --set: %v, want a fault that does not show it", err)
		}
	}
	for set, want := range map[string]string{
		"products.refresh.policy":       "PATH=VALUE",
		"=1":                            "PATH=VALUE",
		"products=1":                    "leads nowhere",
		"prodcts.refresh.policy=swr":    "no cache prodcts",
		"products.refresh.polcy=swr":    "did you mean policy?",
		"products.refresh.policy=swrr":  "did you mean swr?",
		"products.tiers.l9.capacity=1":  "no tier l9",
		"products.tiers.l1.capacity=":   "a single value",
		"products.tiers.l1.capacity={}": "a single value",
		"products.lifetime.ttl.x=5":     "leads through what is not a mapping",
		"products.lifetime.ttl=5":       "a bare number",
		"products.lifetime.ttl=${NOPE}": "NOPE is not set",
	} {
		if _, err := parse(t, whole, set); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--set") {
			t.Errorf("--set %s: got %v, want a fault with --set and %q", set, err, want)
		}
	}
}

// A slip near a secret does not show it.
func TestSlipsHideSecrets(t *testing.T) {
	const hidden = "hunter2secret"
	tier3 := func(fields string) string { return small(fields, goodLife, "") }
	for _, text := range []string{
		tier3("backend: redis, url: 'redis://u:hunter2secret@${UNSET_HOST}:1'"),
		tier3("backend: redis, url: 'redis://u:pa${x-y}hunter2secret@h'"),
		tier3(`backend: redis, url: "${NLHOST:-redis://u:hunter2secret@h}\n"`),
		tier3("backend: redis, url: hunter2secret"),
		tier3("backend: redis, url: [hunter2secret]"),
		tier3("backend: redis, url:redis://u:hunter2secret@h:1"),
		tier3("backend: redis, url: *hunter2secret"),
		tier3("backend: 'redis://u:hunter2secret@h'"),
		tier3("backend: memcached, servers: 'redis://u:hunter2secret@h'"),
		tier3("backend: memcached, servers: ['redis://u:hunter2secret@h']"),
		tier3("backend: memcached, servers: ['a:1'], encryption: {key: 'hunter2secret${UNSET}'}"),
		tier3("backend: memcached, servers: ['a:1'], encryption: {keys: hunter2secret}"),
		tier3("backend: memcached, servers: ['a:1'], encryption: {keys: [hunter2secret, true]}"),
		tier3("backend: memcached, servers: ['a:1'], encryption: {hunter2secret}"),
		tier3("backend: memcached, servers: ['a:1'], encryption: hunter2secret"),
	} {
		_, err := parse(t, text)
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), hidden) {
			t.Errorf("%s\ngot %v, want faults that do not show the secret", text, err)
		}
	}
	for _, set := range []string{"products.tiers.l3.url=redis://u:hunter2secret@${X}", "redis://u:hunter2secret@h=x", "products.redis://hunter2secret@h.x=5"} {
		if _, err := parse(t, whole, set); err == nil || strings.Contains(err.Error(), hidden) {
			t.Errorf("--set %s: got %v", set, err)
		}
	}
	o := config.Options{Set: []string{"a.b=hunter2secret"}}
	if s := fmt.Sprintf("%v %+v %#v", o, o, o); strings.Contains(s, hidden) {
		t.Errorf("options show %q", s)
	}
}

// No way to print a document or what is wrong with it shows a secret.
func TestSecretsAreHidden(t *testing.T) {
	doc, err := parse(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	dump := fmt.Sprintf("%v %+v %#v %s %v %+v", doc, doc, doc, doc, *doc, *doc)
	for _, secret := range []string{"hunter2secret", key} {
		if strings.Contains(dump, secret) {
			t.Errorf("a dump shows %q:\n%s", secret, dump)
		}
	}
}
