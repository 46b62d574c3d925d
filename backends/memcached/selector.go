package memcached

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

// selector spreads keys over servers by rendezvous hashing (Thaler and Ravishankar,
// 1998): each key belongs to the server that scores highest for it. When a server
// joins n others, one key in n+1 moves, to the new one; when one leaves, only its own
// keys move. Every process with the same servers, in whatever order, chooses alike.
type selector struct {
	servers []choice
}

type choice struct {
	addr *addr // a pointer: the client takes equal addresses for one server
	seed uint64
}

var _ memcache.ServerSelector = (*selector)(nil)

// NewSelector returns the selector that [Open] uses, for a client of one's own:
// memcache.NewFromSelector(selector). Servers are host:port or the path of a socket.
func NewSelector(servers ...string) (memcache.ServerSelector, error) {
	if err := checkServers(servers); err != nil {
		return nil, err
	}
	return newSelector(servers), nil
}

// checkServers tells what is wrong with the servers of a selector.
func checkServers(names []string) error {
	if len(names) == 0 {
		return errors.New("terrace/memcached: Servers is empty: want at least one")
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			return fmt.Errorf("terrace/memcached: server %q is given twice", name)
		}
		seen[name] = true
		if strings.Contains(name, "/") {
			continue
		}
		if _, port, err := net.SplitHostPort(name); err != nil || port == "" {
			return fmt.Errorf("terrace/memcached: server %q: want host:port, or the path of a socket", name)
		}
	}
	return nil
}

// newSelector takes servers that checkServers has passed. Their texts are what counts:
// another spelling is another server.
func newSelector(names []string) *selector {
	s := &selector{servers: make([]choice, len(names))}
	for i, name := range names {
		a := &addr{network: "tcp", address: name}
		if strings.Contains(name, "/") {
			a.network = "unix"
		}
		s.servers[i] = choice{addr: a, seed: hash(name)}
	}
	return s
}

// PickServer implements [memcache.ServerSelector].
func (s *selector) PickServer(key string) (net.Addr, error) {
	if len(s.servers) == 0 {
		return nil, memcache.ErrNoServers
	}
	return s.servers[s.pick(key)].addr, nil
}

// pick returns the number of the key's server, of which there is one at least.
func (s *selector) pick(key string) int {
	if len(s.servers) == 1 {
		return 0
	}
	k := hash(key)
	best, top := 0, mix(k^s.servers[0].seed)
	for i, server := range s.servers[1:] {
		// Equal scores are broken by the name, so that the order does not count.
		score := mix(k ^ server.seed)
		if score > top || score == top && server.addr.address < s.servers[best].addr.address {
			best, top = i+1, score
		}
	}
	return best
}

// Each implements [memcache.ServerSelector].
func (s *selector) Each(f func(net.Addr) error) error {
	for _, server := range s.servers {
		if err := f(server.addr); err != nil {
			return err
		}
	}
	return nil
}

// addr is a server's address as it was given; it is resolved when it is dialled.
type addr struct{ network, address string }

func (a *addr) Network() string { return a.network }
func (a *addr) String() string  { return a.address }

// hash is the same in every process.
func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return mix(h.Sum64())
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), in which every
// bit of x counts for every bit of the result; FNV alone leaves like keys alike.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
