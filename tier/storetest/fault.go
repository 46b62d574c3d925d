package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Op is a method of a store.
type Op string

// The methods of [tier.Store], [tier.Bytes] and their capabilities.
const (
	Get        Op = "Get"
	Set        Op = "Set"
	Delete     Op = "Delete"
	GetMany    Op = "GetMany"
	SetMany    Op = "SetMany"
	DeleteMany Op = "DeleteMany"
	GetVersion Op = "GetVersion"
	SetIf      Op = "SetIf"
	Bury       Op = "Bury"
	Heads      Op = "Heads"
	Writers    Op = "Writers"
	Clear      Op = "Clear"
	Close      Op = "Close"
)

// Call is one call of a store's method.
type Call struct {
	Op   Op
	Keys []any // one, many or, for Clear and Close, none
}

// String returns the call as "Get(key)".
func (c Call) String() string {
	s := fmt.Sprint(c.Keys...)
	if len(c.Keys) > 1 {
		s = fmt.Sprint(c.Keys)
	}
	return string(c.Op) + "(" + s + ")"
}

// Fault stands between a caller and a store: it is called in place of the method,
// and do calls that. It returns what the caller gets for an error; the other
// results are those of do, or nothing where do was not called. It is called
// concurrently.
type Fault func(ctx context.Context, call Call, do func() error) error

// Fail answers with the error and does nothing.
func Fail(err error) Fault {
	return func(context.Context, Call, func() error) error { return err }
}

// Slow waits before the call, at most until the context ends.
func Slow(d time.Duration) Fault {
	return func(ctx context.Context, _ Call, do func() error) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return do()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// BlackHole never answers: the caller waits until its context ends.
func BlackHole() Fault {
	return func(ctx context.Context, _ Call, _ func() error) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// Drop answers that all is well and does nothing: reads find nothing, writes are
// lost.
func Drop() Fault { return Fail(nil) }

// LoseReply makes the call and then answers with the error, as a connection does
// that breaks before the reply.
func LoseReply(err error) Fault {
	return func(_ context.Context, _ Call, do func() error) error {
		_ = do()
		return err
	}
}

// Hold makes the call wait until the channel is closed, whatever its context does,
// for tests that need an order of events.
func Hold(until <-chan struct{}) Fault {
	return func(_ context.Context, _ Call, do func() error) error {
		<-until
		return do()
	}
}

// Times is the fault for the first n calls; later ones go through.
func Times(n int, f Fault) Fault {
	var calls atomic.Int64
	return func(ctx context.Context, call Call, do func() error) error {
		if calls.Add(1) > int64(n) {
			return do()
		}
		return f(ctx, call, do)
	}
}

// OnKey is the fault for calls that concern the key; others go through.
func OnKey(key any, f Fault) Fault {
	return func(ctx context.Context, call Call, do func() error) error {
		if !slices.Contains(call.Keys, key) {
			return do()
		}
		return f(ctx, call, do)
	}
}

// Faults is what [Faulty] and [FaultyBytes] share: the faults by method, and the
// calls that were made. Its methods may be called concurrently with the store's.
type Faults struct {
	mu     sync.Mutex
	faults map[Op]Fault
	calls  []Call
	remote bool
}

// Inject puts the fault in the place of the methods named, or of all methods but
// Close where none is.
func (f *Faults) Inject(fault Fault, ops ...Op) {
	if len(ops) == 0 {
		ops = []Op{Get, Set, Delete, GetMany, SetMany, DeleteMany, GetVersion, SetIf, Bury, Heads, Writers, Clear}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults == nil {
		f.faults = make(map[Op]Fault)
	}
	for _, op := range ops {
		f.faults[op] = fault
	}
}

// Heal removes the faults of the methods named, or all. A call that a fault holds
// stays with it.
func (f *Faults) Heal(ops ...Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(ops) == 0 {
		clear(f.faults)
	}
	for _, op := range ops {
		delete(f.faults, op)
	}
}

// Calls returns the calls made so far, in the order in which they began.
func (f *Faults) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Count returns how many calls of the methods named were made, or of all.
func (f *Faults) Count(ops ...Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, call := range f.calls {
		if len(ops) == 0 || slices.Contains(ops, call.Op) {
			n++
		}
	}
	return n
}

// ForgetCalls empties the record of calls.
func (f *Faults) ForgetCalls() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

// SetRemote makes the store say that it is not local, so that a cache gives its
// calls a time limit.
func (f *Faults) SetRemote() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remote = true
}

func (f *Faults) isRemote() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.remote
}

// do records the call and makes it, through its fault if there is one.
func (f *Faults) do(ctx context.Context, call Call, do func() error) error {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	fault := f.faults[call.Op]
	f.mu.Unlock()
	if fault == nil {
		return do()
	}
	return fault(ctx, call, do)
}

func anys[K any](keys []K) []any {
	out := make([]any, len(keys))
	for i, key := range keys {
		out[i] = key
	}
	return out
}
