package memcached

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

// Selector spreads keys over servers by rendezvous hashing (Thaler and Ravishankar,
// 1998): each key belongs to the server that scores highest for it. When a server
// joins n others, one key in n+1 moves, to the new one; when one leaves, only its own
// keys move. Every process with the same servers, in whatever order, chooses alike.
//
// It is a [memcache.ServerSelector], for clients of one's own:
//
//	selector, err := memcached.NewSelector("10.0.0.1:11211", "10.0.0.2:11211")
//	client := memcache.NewFromSelector(selector)
type Selector struct {
	servers []server
}

type server struct {
	addr *addr // a pointer: the client takes equal addresses for one server
	seed uint64
}

var _ memcache.ServerSelector = (*Selector)(nil)

// NewSelector returns a selector over servers, each host:port or the path of a Unix
// socket. The texts are what counts: another spelling is another server.
func NewSelector(servers ...string) (*Selector, error) {
	if len(servers) == 0 {
		return nil, errors.New("terrace/memcached: no servers given")
	}
	s := &Selector{servers: make([]server, len(servers))}
	seen := make(map[string]bool, len(servers))
	for i, name := range servers {
		if seen[name] {
			return nil, fmt.Errorf("terrace/memcached: server %q is given twice", name)
		}
		seen[name] = true
		a := &addr{network: "unix", address: name}
		if !strings.Contains(name, "/") {
			a.network = "tcp"
			if _, port, err := net.SplitHostPort(name); err != nil || port == "" {
				return nil, fmt.Errorf("terrace/memcached: server %q: want host:port, or the path of a socket", name)
			}
		}
		s.servers[i] = server{addr: a, seed: hash(name)}
	}
	return s, nil
}

// PickServer implements [memcache.ServerSelector].
func (s *Selector) PickServer(key string) (net.Addr, error) {
	if len(s.servers) == 0 {
		return nil, memcache.ErrNoServers
	}
	k := hash(key)
	best, top := s.servers[0], mix(k^s.servers[0].seed)
	for _, server := range s.servers[1:] {
		// Equal scores are broken by the name, so that the order does not count.
		score := mix(k ^ server.seed)
		if score > top || score == top && server.addr.address < best.addr.address {
			best, top = server, score
		}
	}
	return best.addr, nil
}

// Each implements [memcache.ServerSelector].
func (s *Selector) Each(f func(net.Addr) error) error {
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
