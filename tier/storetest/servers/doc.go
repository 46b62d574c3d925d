// Package servers starts real Redis and memcached servers for tests, each with
// one call, as child processes on free loopback ports:
//
//	r := servers.Redis(t)
//	store := redis.New(goredis.NewClient(&goredis.Options{Addr: r.Addr()}))
//
// [RedisCluster] and [RedisSentinel] start several that work together.
//
// They keep nothing on disk beyond the test's temporary directory and end with
// the test. [Server.Stop], [Server.Kill] and [Server.Start] let a test restart
// one, and [Proxy] puts a faulty network in front of it.
//
// A test that calls for a server which is not installed fails; it is not skipped,
// since a skipped test looks like a passed one.
//
// All functions and methods that take or hold a testing.TB may fail the test, and
// so belong to the goroutine that runs it.
package servers
