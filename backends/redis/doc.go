// Package redis is a byte store in Redis, or in a server that speaks its protocol:
// standalone, behind Sentinel, or a Cluster.
//
//	tier.Encode[string, Product](redis.New(client), codec.JSON[Product]())
//
// A context bounds each call, the wait for a connection, dialling and repeats
// included, whatever the client's settings. A call that goes out of time leaves its
// command behind, which may still reach the server; [Options.MaxCalls] bounds how
// many there are.
package redis
