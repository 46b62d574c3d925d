package main

import (
	"net"
	"net/url"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// forwarder passes connections on to servers, one port of its own for each, until it is
// cut.
type forwarder struct {
	proxies map[string]*toxiproxy.Proxy // by the server's address
}

func newForwarder(addresses []string) (*forwarder, error) {
	f := &forwarder{proxies: make(map[string]*toxiproxy.Proxy)}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for _, address := range addresses {
		p := toxiproxy.NewProxy(server, address, "127.0.0.1:0", address)
		if err := p.Start(); err != nil {
			f.cut()
			return nil, err
		}
		f.proxies[address] = p
	}
	return f, nil
}

// dials returns where to connect to in place of each server.
func (f *forwarder) dials() map[string]string {
	to := make(map[string]string)
	for address, p := range f.proxies {
		to[address] = p.Listen
	}
	return to
}

// cut closes all connections, and has new ones refused.
func (f *forwarder) cut() {
	for _, p := range f.proxies {
		p.Stop()
	}
}

// restore lets connections through again, on the ports of before.
func (f *forwarder) restore() error {
	for _, p := range f.proxies {
		if err := p.Start(); err != nil {
			return err
		}
	}
	return nil
}

// through returns the order with connections that go through the forwarder.
func (o cacheOrder) through(f *forwarder) cacheOrder {
	if o.Redis == "" {
		o.Dial = f.dials()
		return o
	}
	u, err := url.Parse(o.Redis)
	if err != nil {
		return o // it was parsed before
	}
	u.Host = f.dials()[redisAddress(u)]
	o.Redis = u.String()
	return o
}

// redisAddress returns the host:port of a URL.
func redisAddress(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = "6379"
	}
	return net.JoinHostPort(host, port)
}
