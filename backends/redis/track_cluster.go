package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// clusterTracking is the tracking of a Cluster: a line to each of its masters, since each
// node tells of the keys that it has written. All is told while there is a line to every
// master, and it is known who they are. A slot that moves between two of them is told of
// by the one that has it. With a master that is new, what it has written until its line
// stands is missed: also from before it was one, while its first slot was moved to it.
type clusterTracking struct {
	options  Options
	client   *redis.ClusterClient // whose topology is to follow ours
	topology *topology
	box      *mailbox[change]
	looks    chan struct{} // of one

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	nodes    map[string]*nodeTracking // by address
	answered time.Time                // when it was last known who the masters are
	known    bool                     // it still is
	whole    bool                     // all is told
	began    bool                     // it was whole once
}

// nodeTracking is the line to a node that is a master, or was one not long ago: while a
// Cluster changes its nodes do not agree on who is.
type nodeTracking struct {
	*tracking
	cluster *clusterTracking

	// Guarded by the cluster's lock.
	up     bool
	named  time.Time // when it was last called a master
	broken bool      // it was lost while it was not called one
}

// What bounds how often it is asked who the masters are.
const (
	// looksPerPing is how much sooner than after a ping's interval it is asked again, at
	// the earliest, when there is a reason to.
	looksPerPing = 10
	// staleLooks is after how many intervals without an answer nobody knows any more, and
	// for how many a node is listened to that is no master any more.
	staleLooks = 3
	// mostMasters is how many are tracked. A Cluster works with about a thousand nodes.
	mostMasters = 1000
)

// errMasters is why all may be missed where there is a master that was not tracked.
var errMasters = errors.New("terrace/redis: tracking: the Cluster has a new master")

func newClusterTracking(c *redis.ClusterClient, o Options, box *mailbox[change]) *clusterTracking {
	return &clusterTracking{
		options: o, client: c, box: box,
		topology: newTopology(c.Options(), o.Tracking.Timeout),
		looks:    make(chan struct{}, 1),
		nodes:    make(map[string]*nodeTracking),
	}
}

func (c *clusterTracking) start(ctx context.Context) {
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.running.Go(c.follow)
	c.running.Go(func() { c.box.run(c.ctx) })
}

func (c *clusterTracking) stop() { c.cancel() }

func (c *clusterTracking) close() {
	c.cancel()
	c.running.Wait()
}

// look has the masters asked for soon. It is called by go-redis with its locks held.
func (c *clusterTracking) look() {
	select {
	case c.looks <- struct{}{}:
	default:
	}
}

// follow keeps a line to each of the masters, whoever they are.
func (c *clusterTracking) follow() {
	defer c.topology.close()
	defer func() { end(c.nodes) }()
	ping := c.options.Tracking.Ping
	heard := time.Now()
	for {
		masters, err := c.topology.masters(c.ctx)
		switch {
		case c.ctx.Err() != nil:
			return
		case err == nil:
			heard = time.Now()
			c.track(masters, heard)
		case time.Since(heard) > staleLooks*ping || len(c.nodes) == 0:
			c.forget(err)
		}
		if !c.wait(ping/looksPerPing, nil) || !c.wait(ping-ping/looksPerPing, c.looks) {
			return
		}
	}
}

// end ends lines that nobody starts again.
func end(nodes map[string]*nodeTracking) {
	for _, n := range nodes {
		n.stop()
	}
	for _, n := range nodes {
		n.close()
	}
}

// wait waits for so long, or until a look is asked for, and reports whether to go on.
func (c *clusterTracking) wait(d time.Duration, looks <-chan struct{}) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-looks:
	case <-c.ctx.Done():
	}
	return c.ctx.Err() == nil
}

// track has lines to these masters.
func (c *clusterTracking) track(masters map[string]*redis.Options, now time.Time) {
	gone := make(map[string]*nodeTracking)
	c.mu.Lock()
	c.answered, c.known = now, true
	for addr, n := range c.nodes {
		switch {
		case masters[addr] != nil && !n.broken:
			n.named = now
		case n.broken || !n.up || now.Sub(n.named) > staleLooks*c.options.Tracking.Ping:
			delete(c.nodes, addr)
			gone[addr] = n
		}
	}
	changed := len(gone) > 0
	for addr, options := range masters {
		if c.nodes[addr] == nil {
			changed = true
			c.nodes[addr] = c.newNode(options, now)
			if c.whole {
				c.miss(errMasters)
			}
		}
	}
	c.update()
	changed = changed && c.began
	c.mu.Unlock()
	if changed {
		c.client.ReloadState(c.ctx)
	}
	end(gone)
}

// newNode is called with the lock held.
func (c *clusterTracking) newNode(options *redis.Options, now time.Time) *nodeTracking {
	n := &nodeTracking{tracking: newTracking(options, c.options), cluster: c, named: now}
	n.to = n
	n.start(c.ctx)
	return n
}

// miss says that not all is told. It is called with the lock held.
func (c *clusterTracking) miss(why error) {
	c.whole = false
	c.box.lost(why) // which tells it once
}

// forget says that nobody knows who the masters are.
func (c *clusterTracking) forget(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
	c.miss(fmt.Errorf("terrace/redis: tracking: the Cluster's masters are not known: %w", why))
}

// update tells when all is told. It is called with the lock held.
func (c *clusterTracking) update() {
	if c.whole || !c.known {
		return
	}
	for _, n := range c.nodes {
		if n.isMaster() && !n.up {
			return
		}
	}
	c.whole, c.began = true, true
	c.box.connected()
}

// isMaster is called with the cluster's lock held.
func (n *nodeTracking) isMaster() bool { return n.named.Equal(n.cluster.answered) }

// message implements [sink]. What the masters tell that are heard is handed on also while
// others are not, except before all were.
func (n *nodeTracking) message(m change, size int) {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began {
		c.box.message(m, size)
	}
}

// connected implements [sink].
func (n *nodeTracking) connected() {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	n.up = true
	c.update()
}

// lost implements [sink]. A master that is lost may have been replaced.
func (n *nodeTracking) lost(why error) {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	n.up = false
	c.look()
	if n.isMaster() {
		c.miss(why)
	} else {
		n.broken = true
	}
}
