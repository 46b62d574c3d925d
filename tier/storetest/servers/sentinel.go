package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RedisReplica starts a Redis that copies master, and returns when it has.
func RedisReplica(t testing.TB, master *Server, args ...string) *Server {
	t.Helper()
	masterHost, port, _ := net.SplitHostPort(master.Addr())
	// Else it would wait 5 s for more replicas. One that asks for a password still does.
	_, _ = redisDo(master.Addr(), "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	replica := Redis(t, append([]string{"--replicaof", masterHost, port}, args...)...)
	await(t, readyWithin, "the replica has caught up", func() error {
		info, err := redisDo(replica.Addr(), "INFO", "replication")
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = errors.New("the link to its master is not up")
		}
		return err
	})
	return replica
}

// RedisSentinel starts a Sentinel that watches master under the name, and alone
// decides when it is down: after a second without an answer. It returns when it knows
// as many replicas.
func RedisSentinel(t testing.TB, master *Server, name string, replicas int) *Server {
	t.Helper()
	masterHost, masterPort, _ := net.SplitHostPort(master.Addr())
	sentinel := run(t, spec{
		binary: "redis-server",
		args: func(port int, dir string) []string {
			path := filepath.Join(dir, "sentinel.conf")
			config := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\nsentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 5000\n",
				name, masterHost, masterPort)
			if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
				t.Fatalf("start a Sentinel: %v", err)
			}
			return []string{path, "--sentinel", "--bind", host, "--port", strconv.Itoa(port), "--dir", dir}
		},
		ready: redisReady,
	})
	await(t, readyWithin, "the Sentinel knows the replicas", func() error {
		info, err := redisDo(sentinel.Addr(), "INFO", "sentinel")
		if err == nil && !strings.Contains(info, fmt.Sprintf("slaves=%d,", replicas)) {
			err = fmt.Errorf("it says: %s", info)
		}
		return err
	})
	return sentinel
}
