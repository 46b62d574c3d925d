package faultproxy

import (
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

const faultType = "terrace_fault"

func init() { toxics.Register(faultType, new(fault)) }

// condition is the state of a network.
type condition struct {
	delay  time.Duration // of what the server sends
	hole   bool          // nothing arrives
	closed bool          // what is on its way is dropped
}

// network is a condition that changes while connections live.
type network struct {
	mu      sync.Mutex
	now     condition
	changed chan struct{} // closed at the next change
}

func (n *network) set(c condition) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now.closed {
		return
	}
	n.now = c
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *network) get() (condition, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now, n.changed
}

// fault is the toxic that does to one direction of the connections what the
// network's condition says.
type fault struct {
	network   *network
	direction stream.Direction
}

// Pipe implements [toxics.Toxic]. It always takes what comes in, so that nothing
// before it can block, and holds it until it is due.
func (f *fault) Pipe(stub *toxics.ToxicStub) {
	in := stub.Input
	var held []*stream.StreamChunk
	for {
		now, changed := f.network.get()
		if now.closed {
			held = nil
		}
		if in == nil && len(held) == 0 {
			stub.Close()
			return
		}
		var out chan<- *stream.StreamChunk
		var first *stream.StreamChunk
		var due <-chan time.Time
		if len(held) > 0 && !now.hole {
			first = held[0]
			wait := time.Duration(0)
			if f.direction == stream.Downstream {
				wait = now.delay - time.Since(first.Timestamp)
			}
			if wait > 0 {
				due = time.After(wait)
			} else {
				out = stub.Output
			}
		}
		select {
		case chunk := <-in:
			if chunk == nil {
				in = nil // the sender has closed; what it sent still arrives
			} else {
				held = append(held, chunk)
			}
		case out <- first:
			held = held[1:]
		case <-due:
		case <-changed:
		case <-stub.Interrupt:
			return
		}
	}
}
