package config

// These types are the document. Their tags are the one description of it: the parser,
// the JSON schema and the reference in docs/configuration.md are made of them.

// placed is a part of the document that knows where it stands.
type placed struct{ at *node }

func (p *placed) place(n *node) { p.at = n }

type documentSpec struct {
	placed
	Caches map[string]*cacheSpec `key:"caches" must:"yes" doc:"The caches, each under its name."`
}

type cacheSpec struct {
	placed
	Tiers    []tierSpec   `key:"tiers" must:"yes" doc:"The tiers to chain, the fastest first. At least one."`
	Lifetime lifetimeSpec `key:"lifetime" must:"yes" live:"yes" doc:"How long entries live."`
	Refresh  refreshSpec  `key:"refresh" live:"yes" doc:"When an entry is loaded again."`
	Limits   limitsSpec   `key:"limits" live:"yes" doc:"Bounds of what the cache does at once."`
	Lease    leaseSpec    `key:"lease" default:"none: each process loads for itself" doc:"One process at a time loads a key. It needs a tier of Redis or memcached. A life alone can stand for the mapping: \"lease: 3s\"."`
	Bus      busSpec      `key:"bus" default:"none: other processes keep what they hold in memory for its ttl" doc:"What is written in one process is dropped from the memory of the others. A kind alone can stand for the mapping: \"bus: pubsub\"."`
	Backoff  backoffSpec  `key:"backoff" doc:"Waits between tries after failures: loads of a key that has a stale value meanwhile, and writes to a tier that failed."`
}

type tierSpec struct {
	placed
	Name           name            `key:"name" must:"yes" eg:"l1" doc:"What statistics, logs and errors call the tier."`
	Backend        choice          `key:"backend" must:"yes" of:"backends" doc:"What keeps the entries. In this process's memory: memory (any eviction), or lru, ristretto, otter, sieve, each with the evictions of its library, lru with all. Shared: redis, memcached. Others by registration."`
	Eviction       choice          `key:"eviction" of:"evictions" for:"memory" default:"the backend's own: lru, tinylfu of ristretto, w-tinylfu of otter, sieve; lru of memory" doc:"What makes room. lru, 2q, arc: golang-lru. tinylfu: Ristretto. w-tinylfu: otter. sieve: SIEVE behind a TinyLFU filter, whose hits take no lock."`
	Capacity       capacity        `key:"capacity" must:"yes" live:"yes" eg:"10_000" for:"memory" doc:"The most that the tier holds: entries (10_000) or memory (256MiB). Memory can be counted with tinylfu and w-tinylfu. Live where the eviction can change it: not 2q and arc."`
	Cost           size            `key:"cost" eg:"2KiB" for:"memory" default:"an estimate of what each entry occupies" doc:"What every entry counts as in a capacity of memory, in place of the estimate. Code can give a function instead."`
	TTL            duration        `key:"ttl" eg:"30s" default:"as long as the lifetime says" doc:"The most that an entry stays in this tier, counted from when it came there."`
	URL            secret          `key:"url" must:"yes" eg:"${REDIS_URL}" for:"redis" doc:"Where Redis is: redis://, rediss:// (TLS), unix://, redis+sentinel://, redis+cluster://. See docs/backends-remote.md. It may hold a password, and is never shown."`
	Servers        []text          `key:"servers" must:"yes" eg:"cache-1:11211" for:"memcached" doc:"The memcached servers as host:port, over which keys are spread."`
	Prefix         text            `key:"prefix" eg:"products:" for:"redis,memcached" default:"none, and then Redis cannot be cleared" doc:"Put before each key, to tell them from those of others. Of two caches in one database neither prefix may begin with the other."`
	Codec          choice          `key:"codec" of:"codecs" for:"bytes" default:"json" doc:"How values become bytes. raw: bytes and strings as they are."`
	Compression    compressionSpec `key:"compression" for:"bytes" default:"none" doc:"Compression of values. Readers read what any setting wrote. An algorithm alone can stand for the mapping: \"compression: s2\"."`
	MinSize        size            `key:"min_size" eg:"1KiB" for:"bytes" default:"1KiB" doc:"Of the compression: smaller values stay as they are. The same as min_size in the mapping."`
	Encryption     encryptionSpec  `key:"encryption" for:"bytes" default:"none" doc:"Encryption of entries with AES-256-GCM. What is not encrypted is not read."`
	Timeout        duration        `key:"timeout" eg:"50ms" for:"bytes,store" default:"500ms" doc:"The most that one call of the tier takes."`
	Breaker        breakerSpec     `key:"breaker" for:"bytes,store" doc:"When the tier is left alone because it does not answer."`
	MaxValueSize   size            `key:"max_value_size" eg:"1MiB" for:"redis,memcached" default:"512MiB in Redis, 1GiB in memcached" doc:"The largest value that is sent; a larger one is not kept in this tier."`
	MaxCalls       count           `key:"max_calls" eg:"512" for:"redis" default:"512" doc:"Calls under way at a time, with those whose callers have left. More than the client's pool."`
	MaxConnections count           `key:"max_connections" eg:"64" for:"memcached" default:"64" doc:"Connections to each server."`
	Gather         count           `key:"gather" eg:"128" for:"redis,memcached" default:"128" doc:"Keys that one round trip of reads carries at most; 1 switches that off."`
	Options        *node           `key:"options" for:"registered" doc:"What a registered backend or eviction wants to know."`
}

type breakerSpec struct {
	placed
	Failures count    `key:"failures" eg:"2" default:"2" doc:"After how many failures in a row to reach the tier, or to get an answer in time, its calls are skipped."`
	Probe    duration `key:"probe" eg:"1s" default:"1s" doc:"How long they are skipped before one is let through, whose success ends that."`
}

type compressionSpec struct {
	placed
	Algorithm choice `key:"algorithm" of:"none,s2,zstd" must:"yes" doc:"none, s2 (fast) or zstd (small)."`
	MinSize   size   `key:"min_size" eg:"1KiB" default:"1KiB" doc:"Smaller values stay as they are."`
}

type encryptionSpec struct {
	placed
	Key  secret   `key:"key" eg:"${CACHE_KEY}" doc:"The key: 32 bytes as base64 or hex."`
	Keys []secret `key:"keys" eg:"${CACHE_KEY}" doc:"Several keys, for rotation: the first encrypts, all decrypt. In place of key."`
}

type lifetimeSpec struct {
	placed
	TTL                  duration `key:"ttl" must:"yes" live:"yes" forever:"yes" eg:"5m" doc:"How long an entry is fresh, counted from when its load began."`
	Jitter               share    `key:"jitter" live:"yes" eg:"10%" default:"none" doc:"The share by which each entry's ttl varies at random, so that entries stored together do not end together."`
	StaleWhileRevalidate duration `key:"stale_while_revalidate" live:"yes" zero:"yes" eg:"30s" default:"0s" doc:"How long past fresh an entry may be served while a load in the background replaces it, under the policies swr and xfetch."`
	StaleIfError         duration `key:"stale_if_error" live:"yes" zero:"yes" forever:"yes" eg:"1h" default:"0s" doc:"How long past fresh an entry may be served when a load fails."`
	Absent               duration `key:"absent" live:"yes" zero:"yes" eg:"5s" default:"0s: not at all" doc:"How long the answer \"there is none\" is kept."`
}

type refreshSpec struct {
	placed
	Policy  choice `key:"policy" live:"yes" must:"yes" of:"policies" doc:"fixed: when it has ended. swr: in the background once it is stale. xfetch: early, at random, the likelier the nearer its end and the longer its load."`
	Beta    factor `key:"beta" live:"yes" eg:"1" default:"1" doc:"Of xfetch: above 1 refreshes earlier, below 1 later."`
	Options *node  `key:"options" live:"yes" doc:"What a registered policy wants to know."`
}

type limitsSpec struct {
	placed
	Flights     count    `key:"flights" live:"yes" eg:"65536" default:"65536" doc:"Loads, and reads of shared tiers, that run at once. More wait, or get a stale value."`
	Loads       count    `key:"loads" live:"yes" eg:"50" default:"no bound" doc:"Loaders that run at once, over all keys. More wait, or are left undone where there is a stale value."`
	Background  count    `key:"background" live:"yes" eg:"64" default:"64" doc:"Refreshes that run at once."`
	LoadTimeout duration `key:"load_timeout" live:"yes" eg:"10s" default:"10s" doc:"How long a load may take."`
	Recovery    count    `key:"recovery" live:"yes" eg:"4096" default:"4096" doc:"For each tier, the writes that failed and wait to be tried again."`
}

type leaseSpec struct {
	placed
	Life duration `key:"life" must:"yes" eg:"3s" doc:"How long a process that has died keeps others from loading. Loads may take longer. At least 50ms."`
}

type busSpec struct {
	placed
	Kind      choice   `key:"kind" must:"yes" of:"pubsub,tracking,both" doc:"pubsub: processes tell each other what they write, over Redis. tracking: Redis tells of every change of the first shared tier, also by programs that know nothing of the cache; one server, Sentinels, or a Cluster whose replicas are not read."`
	URL       secret   `key:"url" eg:"${BUS_URL}" default:"that of the first tier of Redis" doc:"Of pubsub: which Redis the processes talk over. It may hold a password, and is never shown."`
	Channel   text     `key:"channel" eg:"terrace:products" default:"terrace: and the cache's name" doc:"Of pubsub: where caches talk that hold the same keys."`
	Heartbeat duration `key:"heartbeat" eg:"2s" default:"2s" doc:"Of pubsub: how often a cache that has nothing to say tells that it lives. Who misses three drops what may be stale."`
	Clamp     duration `key:"clamp" forever:"yes" eg:"5s" default:"5s" doc:"How long the tiers in memory keep what they hold while the connection is lost."`
	Queue     count    `key:"queue" eg:"4096" default:"4096" doc:"Keys that wait to be announced, or to be looked at again. If there are more, all are dropped."`
}

type backoffSpec struct {
	placed
	Initial duration `key:"initial" eg:"250ms" default:"250ms" doc:"The wait after the first failure; it doubles with each more."`
	Max     duration `key:"max" eg:"10s" default:"10s" doc:"The longest wait."`
}
