package main

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/terracecache/terrace/tier/storetest/faultproxy"
)

// forwarder passes connections on to servers, one port of its own for each, until it is
// told to do something else.
type forwarder struct {
	proxies map[string]*faultproxy.Proxy // by the server's address
}

func newForwarder(addresses []string) (*forwarder, error) {
	f := &forwarder{proxies: make(map[string]*faultproxy.Proxy)}
	for _, address := range addresses {
		p, err := newProxy(address)
		if err != nil {
			f.close()
			return nil, err
		}
		f.proxies[address] = p
	}
	return f, nil
}

func newProxy(address string) (p *faultproxy.Proxy, err error) {
	for range startTries {
		var port int
		if port, err = freePort(); err != nil {
			return nil, err
		}
		if p, err = faultproxy.New(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), address); err == nil {
			return p, nil
		}
	}
	return nil, err
}

// dials returns where to connect to in place of each server.
func (f *forwarder) dials() map[string]string {
	to := make(map[string]string)
	for address, p := range f.proxies {
		to[address] = p.Addr()
	}
	return to
}

// cut closes all connections, and has new ones refused.
func (f *forwarder) cut() {
	for _, p := range f.proxies {
		p.Cut()
	}
}

// restore lets all through again, on the ports of before.
func (f *forwarder) restore() error {
	return f.each((*faultproxy.Proxy).Restore)
}

// blackHole keeps connections open and lets nothing pass.
func (f *forwarder) blackHole() error { return f.each((*faultproxy.Proxy).BlackHole) }

// delay has the servers' answers come later.
func (f *forwarder) delay(d time.Duration) error {
	return f.each(func(p *faultproxy.Proxy) error { return p.Delay(d) })
}

// reset aborts all connections, and accepts new ones.
func (f *forwarder) reset() {
	for _, p := range f.proxies {
		p.Reset()
	}
}

func (f *forwarder) each(do func(*faultproxy.Proxy) error) error {
	for address, p := range f.proxies {
		if err := do(p); err != nil {
			return fmt.Errorf("forward to %s: %w", address, err)
		}
	}
	return nil
}

func (f *forwarder) close() {
	if f == nil {
		return
	}
	for _, p := range f.proxies {
		p.Close()
	}
}

// through returns the order with connections that go through the forwarder.
func (o cacheOrder) through(f *forwarder) cacheOrder {
	if o.Redis == "" {
		o.Dial = f.dials()
		return o
	}
	o.Redis = redisThrough(o.Redis, f)
	return o
}

// redisThrough returns the URL of a Redis with the forwarder's address.
func redisThrough(rawURL string, f *forwarder) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return rawURL // it was parsed before
	}
	u.Host = f.dials()[redisAddress(u)]
	return u.String()
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
