package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// line is what the processes of a fleet and the one that runs them tell each other: one
// JSON object a line, over stdin and stdout. Either end may call the other.
type line struct {
	Call  string          `json:"call,omitempty"` // what is asked; empty in an answer
	ID    uint64          `json:"id"`             // of the caller's; its answer has the same
	Body  json.RawMessage `json:"body,omitempty"`
	Error string          `json:"error,omitempty"`
}

// errGone is the error of calls whose other end is not there any more.
var errGone = errors.New("the process is gone")

// handler answers one kind of call.
type handler func(ctx context.Context, body json.RawMessage) (any, error)

// handle makes a handler of a function.
func handle[In, Out any](f func(context.Context, In) (Out, error)) handler {
	return func(ctx context.Context, body json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		return f(ctx, in)
	}
}

// peer is one end of such a conversation.
type peer struct {
	handlers map[string]handler

	writing sync.Mutex
	w       io.Writer

	mu      sync.Mutex
	last    uint64
	pending map[uint64]chan line
	gone    bool
}

func newPeer(w io.Writer, handlers map[string]handler) *peer {
	return &peer{handlers: handlers, w: w, pending: make(map[uint64]chan line)}
}

// serve reads lines until there are no more, and answers calls, each on a goroutine of
// its own. When it returns no call is being answered, and ours have failed.
func (p *peer) serve(r io.Reader) error {
	ctx, cancel := context.WithCancel(context.Background())
	var answering sync.WaitGroup
	var err error
	for d := json.NewDecoder(r); err == nil; {
		var l line
		if err = d.Decode(&l); err != nil {
			break
		}
		if l.Call != "" {
			answering.Go(func() { p.answer(ctx, l) })
			continue
		}
		p.mu.Lock()
		answered := p.pending[l.ID]
		delete(p.pending, l.ID)
		p.mu.Unlock()
		if answered != nil { // else its caller has left
			answered <- l
		}
	}
	p.mu.Lock()
	p.gone = true
	for id, answered := range p.pending {
		close(answered)
		delete(p.pending, id)
	}
	p.mu.Unlock()
	cancel()
	answering.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *peer) answer(ctx context.Context, l line) {
	back := line{ID: l.ID}
	var out any
	err := fmt.Errorf("no such call: %s", l.Call)
	if h := p.handlers[l.Call]; h != nil {
		out, err = h(ctx, l.Body)
	}
	if err == nil {
		back.Body, err = json.Marshal(out)
	}
	if err != nil {
		back.Error = err.Error()
	}
	_ = p.write(back) // if it is gone, nobody waits
}

// call asks the other end and waits for its answer, which may be nil.
func (p *peer) call(ctx context.Context, name string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	answered := make(chan line, 1)
	p.mu.Lock()
	if p.gone {
		p.mu.Unlock()
		return errGone
	}
	p.last++
	l := line{Call: name, ID: p.last, Body: text}
	p.pending[l.ID] = answered
	p.mu.Unlock()
	if err := p.write(l); err != nil {
		p.leave(l.ID)
		return errGone
	}
	select {
	case back, ok := <-answered:
		switch {
		case !ok:
			return errGone
		case back.Error != "":
			return errors.New(back.Error)
		case answer == nil:
			return nil
		}
		return json.Unmarshal(back.Body, answer)
	case <-ctx.Done():
		p.leave(l.ID)
		return ctx.Err()
	}
}

func (p *peer) leave(id uint64) {
	p.mu.Lock()
	delete(p.pending, id)
	p.mu.Unlock()
}

func (p *peer) write(l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err = p.w.Write(append(text, '\n'))
	return err
}
