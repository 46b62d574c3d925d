package redis

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// What a client of our own does where the URL or the options do not say: give up
// while it still matters to a caller. go-redis's own defaults let an unreachable
// server cost half a minute.
const (
	defaultTimeout = time.Second // to dial; to read; to write; to wait for a connection
	defaultRetries = 1
)

// Open returns a store with a client of its own, which Close closes. It does not
// connect: a server that is down is met by the first call. The URL is one of
//
//	redis://[[user]:password@]host[:port][/database]       one server
//	unix://[[user]:password@]/path/to/socket[?db=database]  one server, by its socket
//	redis+sentinel://[[user]:password@]host[:port][/database]?master_name=name
//	redis+cluster://[[user]:password@]host[:port]
//
// and with "rediss" in place of "redis" the same over TLS. Further Sentinels and
// Cluster nodes follow as addr=host:port, as often as needed. User and password are
// for the Redis servers; those for the Sentinels follow as sentinel_username and
// sentinel_password. Special characters in a password are percent-encoded. The other
// parameters are those of go-redis (pool_size, dial_timeout, read_timeout,
// max_retries and so on). No error holds the URL or any part of a password.
//
// Timeouts that are not given are one second each, with one retry, and contexts are
// always heeded.
func Open(rawURL string, o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	open, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return open(o), nil
}

// CheckURL returns what is wrong with a URL for [Open], or nil. It opens nothing and
// looks nothing up.
func CheckURL(rawURL string) error {
	_, err := parseURL(rawURL)
	return err
}

// OpenClient is [Open] with go-redis's options in place of a URL, for what a URL
// cannot say (TLS certificates, credentials that change). They are not changed.
// Timeouts and retries that are zero have Open's defaults.
func OpenClient(u *redis.UniversalOptions, o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if u == nil {
		return nil, errors.New("terrace/redis: the client's options are nil")
	}
	own := *u
	settings{
		&own.DialTimeout, &own.ReadTimeout, &own.WriteTimeout, &own.PoolTimeout,
		&own.MaxRetries, &own.DialerRetries, &own.ContextTimeoutEnabled,
	}.setDefaults()
	if one := own.Simple(); own.MasterName == "" && len(own.Addrs) <= 1 && !own.IsClusterMode {
		return openOne(one, o), nil
	}
	return owning(redis.NewUniversalClient(&own), o), nil
}

// openOne opens a store on one server.
func openOne(c *redis.Options, o Options) *Store {
	line, c, o := newLine(c, o)
	s := owning(redis.NewClient(c), o)
	if line != nil {
		s.line = line
		s.gatherers.only.WithAlone(s.readAlone)
	}
	return s
}

func owning(client redis.UniversalClient, o Options) *Store {
	dialLate(client)
	s := NewWith(client, o)
	s.owned = true
	return s
}

// parseURL returns what opens the store.
func parseURL(rawURL string) (open func(Options) *Store, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// Its error quotes the URL, and with it the password.
		return nil, errors.New("terrace/redis: open: malformed URL; characters such as / : @ # ? % in a user or password must be percent-encoded")
	}
	scheme, form, _ := strings.Cut(u.Scheme, "+")
	u.Scheme = scheme
	secrets := []string{rawURL, u.Query().Get("password"), u.Query().Get("sentinel_password")}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password)
	}
	fail := func(err error) error {
		if err != nil {
			return fmt.Errorf("terrace/redis: open: %s", redact(err.Error(), secrets))
		}
		return nil
	}
	switch {
	case scheme != "redis" && scheme != "rediss" && scheme != "unix", scheme == "unix" && form != "":
		return nil, errors.New("terrace/redis: open: unknown URL scheme; want redis, rediss or unix, or redis or rediss with +sentinel or +cluster")
	case form == "":
		c, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, fail(err)
		}
		settings{
			&c.DialTimeout, &c.ReadTimeout, &c.WriteTimeout, &c.PoolTimeout,
			&c.MaxRetries, &c.DialerRetries, &c.ContextTimeoutEnabled,
		}.setDefaults()
		return func(o Options) *Store { return openOne(c, o) }, nil
	case form == "cluster":
		if strings.Trim(u.Path, "/") != "" {
			return nil, errors.New("terrace/redis: open: a Cluster has one database only; leave it out of the URL")
		}
		c, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, fail(err)
		}
		settings{
			&c.DialTimeout, &c.ReadTimeout, &c.WriteTimeout, &c.PoolTimeout,
			&c.MaxRetries, &c.DialerRetries, &c.ContextTimeoutEnabled,
		}.setDefaults()
		return func(o Options) *Store { return owning(redis.NewClusterClient(c), o) }, nil
	case form == "sentinel":
		c, err := parseSentinelURL(u)
		if err != nil {
			return nil, fail(err)
		}
		settings{
			&c.DialTimeout, &c.ReadTimeout, &c.WriteTimeout, &c.PoolTimeout,
			&c.MaxRetries, &c.DialerRetries, &c.ContextTimeoutEnabled,
		}.setDefaults()
		return func(o Options) *Store { return owning(redis.NewFailoverClient(c), o) }, nil
	default:
		return nil, errors.New("terrace/redis: open: unknown URL scheme; want +sentinel or +cluster behind redis or rediss, or nothing")
	}
}

// parseSentinelURL gives user and password to the Redis servers, as in the other
// forms; in go-redis's own form of the URL they are the Sentinels'.
func parseSentinelURL(u *url.URL) (*redis.FailoverOptions, error) {
	q := u.Query()
	username, password := q.Get("sentinel_username"), q.Get("sentinel_password")
	q.Del("sentinel_username")
	q.Del("sentinel_password")
	if u.User != nil {
		q.Set("username", u.User.Username())
		if p, ok := u.User.Password(); ok {
			q.Set("password", p)
		}
		u.User = nil
	}
	if u.Port() == "" {
		u.Host += ":26379"
	}
	u.RawQuery = q.Encode()
	c, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, err
	}
	if c.MasterName == "" {
		return nil, errors.New("a redis+sentinel URL needs ?master_name=name")
	}
	c.SentinelUsername, c.SentinelPassword = username, password
	return c, nil
}

// settings are those that the kinds of clients share and whose zero value is not
// what we want.
type settings struct {
	dial, read, write, pool *time.Duration
	retries, dialerRetries  *int
	contextTimeout          *bool
}

func (s settings) setDefaults() {
	for _, d := range []*time.Duration{s.dial, s.read, s.write, s.pool} {
		if *d == 0 {
			*d = defaultTimeout
		}
	}
	for _, n := range []*int{s.retries, s.dialerRetries} {
		if *n == 0 {
			*n = defaultRetries
		}
	}
	*s.contextTimeout = true
}

func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}
