package memcached

import (
	"context"
	"errors"
	"os"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/failure"
	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/backends/internal/lone"
)

// server is one of a store's, with a client, places for calls, and round trips of its own, so
// that none takes anything of another: a client's Close drops the idle connections of all its
// servers, and its GetMulti takes as long as its slowest. Of another's client the servers are
// not known, and taken for one.
type server struct {
	client *memcache.Client
	conns  *connections // nil: the client is another's
	gate   *gate.Gate   // of calls of the client
	watch  *watch       // nil where there is one alone

	readGate *gate.Gate // of reads; the client's where these are its

	readers  *readers               // nil: reads go by the client
	gatherer *gather.Gatherer[item] // nil: reads go alone
	line     *lone.Line[item]       // of a gatherer's reads that are alone; may be nil
	apart    *spell                 // nil where the servers are known
}

// enoughToShare is how many connections are enough for reads to have a share of their own.
const enoughToShare = 8

// newServer returns the server of that name of a store of its own. Its connections are shared out
// once and for all: one for reads that are alone, and of the others half for reads where there are
// enough. Who had to take one of another kind would have it closed and make a new one.
func newServer(name string, o Options) *server {
	sv := &server{conns: newConnections(o)}
	share := o.MaxConnections >= enoughToShare
	if o.Gather > 1 && o.MaxConnections > 1 {
		o.MaxConnections--
		sv.line = newLine(name, o, sv.conns)
	}
	if share {
		reads := o.MaxConnections / 2
		o.MaxConnections -= reads
		sv.readers, sv.readGate = newReaders(name, o, sv.conns), gate.New(reads)
	}
	sv.client = newClient(name, o, sv.conns.DialContext)
	sv.gate = gate.New(o.MaxConnections)
	if !share {
		sv.readGate = sv.gate
	}
	return sv
}

func newClient(name string, o Options, dial dialContext) *memcache.Client {
	client := memcache.NewFromSelector(newSelector([]string{name}))
	client.Timeout, client.MaxIdleConns, client.DialContext = o.Timeout, o.MaxConnections, dial
	return client
}

// gather has Gets that are under way at the same time share round trips.
func (sv *server) gather(most int) {
	if most <= 1 {
		return
	}
	fetch := sv.fetch
	if sv.apart != nil {
		fetch = sv.fetchApart
	}
	sv.gatherer = gather.New(sv.readGate, most, fetch)
	if sv.line != nil {
		sv.gatherer.WithAlone(sv.readAlone)
	}
}

// close turns away who has not begun, and ends the calls of a client of our own.
func (sv *server) close() {
	sv.gate.Close()
	sv.readGate.Close()
	if sv.gatherer != nil {
		sv.gatherer.Close()
	}
	if sv.conns != nil {
		sv.conns.Close()
	}
}

// of returns the server of an item.
func (s *Store) of(itemKey string) *server {
	if len(s.servers) == 1 {
		return s.servers[0]
	}
	return s.servers[s.selector.pick(itemKey)]
}

// redo runs op, and once again where it met a connection that the server had closed.
// It is for what may be done twice.
func (sv *server) redo(ctx context.Context, op func() error) error {
	err := op()
	if sv.reconnect(ctx, err) {
		err = op()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errNotAsked) {
		// On a connection, as to dial in vain is another error. Where a way has broken that
		// says nothing (a firewall has lost its state) the idle ones are as dead, and each
		// would be a call that asks the server in vain, and then waits. And gomemcache keeps
		// a connection whose answers are those to others' questions.
		sv.dropIdle()
	}
	return replied(err)
}

// dropIdle closes the connections that no call uses. Despite its name that is all that the
// client's Close does.
func (sv *server) dropIdle() {
	_ = sv.client.Close()
	if sv.readers != nil {
		sv.readers.drop()
	}
	if sv.line != nil {
		sv.line.Drop()
	}
}

// reconnect reports whether the error is that of a connection that the server had
// closed and it is worth to try again, on a new one.
func (sv *server) reconnect(ctx context.Context, err error) bool {
	if !failure.IsDead(err) || ctx.Err() != nil || sv.gate.Closed() {
		return false
	}
	// A server that has closed one connection (it restarted, or looks for idle ones)
	// has most likely closed the others.
	sv.dropIdle()
	return true
}

// get returns nil where there is nothing.
func (sv *server) get(ctx context.Context, itemKey string) (item *memcache.Item, err error) {
	err = sv.redo(ctx, func() error {
		item, err = sv.client.Get(itemKey)
		if err == nil && item.Key != itemKey {
			return errNotAsked
		}
		return err
	})
	if err != nil {
		return nil, ignoreMiss(err)
	}
	return item, nil
}

func (sv *server) remove(ctx context.Context, itemKey string) error {
	return sv.redo(ctx, func() error { return ignoreMiss(sv.client.Delete(itemKey)) })
}
