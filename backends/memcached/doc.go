// Package memcached is a byte store in one or more memcached servers.
//
//	store, err := memcached.Open(memcached.Options{Servers: []string{"10.0.0.1:11211", "10.0.0.2:11211"}})
//	...
//	tier.Encode[string, Product](store, codec.JSON[Product]())
//
// A context bounds each call, the wait for a connection and dialling included,
// though the client knows no contexts: a call that goes out of time leaves its
// request behind, which may still reach the server, and which ends by the socket's
// timeout. [Options.MaxConnections] bounds how many there are.
//
// The store cannot be cleared: memcached does not list its keys, and flush_all would
// take those of others too.
package memcached
