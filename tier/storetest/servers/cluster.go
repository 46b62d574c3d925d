package servers

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clusterWithin bounds the wait for nodes to agree on who they are.
const clusterWithin = 20 * time.Second

// RedisCluster starts a Redis Cluster of masters that share the slots evenly.
// Further args go to each node.
func RedisCluster(t testing.TB, nodes int, args ...string) []*Server {
	t.Helper()
	cluster := make([]*Server, nodes)
	bus := make([]int, nodes)
	for i := range cluster {
		var err error
		if bus[i], err = freePort(); err != nil {
			t.Fatalf("start a cluster: %v", err)
		}
		cluster[i] = Redis(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus[i]), "--cluster-node-timeout", "2000",
		}, args...)...)
	}
	const slots = 16384
	for i, node := range cluster {
		mustDo(t, node, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/nodes), strconv.Itoa((i+1)*slots/nodes-1))
		_, port, _ := net.SplitHostPort(node.Addr())
		mustDo(t, cluster[0], "CLUSTER", "MEET", host, port, strconv.Itoa(bus[i]))
	}
	for _, node := range cluster {
		await(t, clusterWithin, "the cluster is up", func() error {
			info, err := redisDo(node.Addr(), "CLUSTER", "INFO")
			if err == nil && !(strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d\r", nodes))) {
				err = fmt.Errorf("it says: %s", info)
			}
			return err
		})
	}
	return cluster
}

// mustDo has a Redis do one thing.
func mustDo(t testing.TB, s *Server, args ...string) string {
	t.Helper()
	answer, err := redisDo(s.Addr(), args...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return answer
}

// await polls until the condition returns nil.
func await(t testing.TB, limit time.Duration, what string, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is still not so that %s: %v", limit, what, err)
		}
		time.Sleep(pollEvery)
	}
}

// RedisClusterNode starts a node that joins a Cluster as a master without slots, and
// returns when all others know of it.
func RedisClusterNode(t testing.TB, cluster []*Server, args ...string) *Server {
	t.Helper()
	node := joining(t, cluster[0], args...)
	id := strings.TrimSpace(mustDo(t, node, "CLUSTER", "MYID"))
	for _, known := range cluster {
		await(t, clusterWithin, "the Cluster knows the node", func() error {
			nodes, err := redisDo(known.Addr(), "CLUSTER", "NODES")
			if err == nil && !strings.Contains(nodes, id) {
				err = fmt.Errorf("it says: %s", nodes)
			}
			return err
		})
	}
	return node
}

// joining starts a node and has it met.
func joining(t testing.TB, known *Server, args ...string) *Server {
	t.Helper()
	bus, err := freePort()
	if err != nil {
		t.Fatalf("start a node of a Cluster: %v", err)
	}
	node := Redis(t, append([]string{
		"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "2000",
	}, args...)...)
	_, port, _ := net.SplitHostPort(node.Addr())
	mustDo(t, known, "CLUSTER", "MEET", host, port, strconv.Itoa(bus))
	return node
}

// RedisClusterReplica starts a node that copies a master of a Cluster and takes its place
// when it dies. It returns when it has copied all, and the master knows of it.
func RedisClusterReplica(t testing.TB, master *Server, args ...string) *Server {
	t.Helper()
	replica := joining(t, master, append([]string{
		"--cluster-replica-validity-factor", "0", "--repl-ping-replica-period", "1",
	}, args...)...)
	id := strings.TrimSpace(mustDo(t, master, "CLUSTER", "MYID"))
	await(t, clusterWithin, "the replica knows its master", func() error {
		_, err := redisDo(replica.Addr(), "CLUSTER", "REPLICATE", id) // once, as each begins anew
		return err
	})
	await(t, clusterWithin, "the replica has caught up", func() error {
		info, err := redisDo(replica.Addr(), "INFO", "replication")
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = fmt.Errorf("it says: %s", info)
		}
		return err
	})
	return replica
}
