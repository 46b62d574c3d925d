package main

import (
	"context"
	"io"
)

// interruptible reads from what may take any time to yield something, such as a pipe, and
// does not wait for it when the context ends. What is read at that time is lost.
type interruptible struct {
	ctx    context.Context //nolint:containedctx // that of one run, by which an io.Reader cannot be told
	from   io.Reader
	buffer []byte
	done   chan int
	err    error // of the read that is done
}

func newInterruptible(ctx context.Context, from io.Reader) *interruptible {
	return &interruptible{ctx: ctx, from: from, buffer: make([]byte, 64<<10), done: make(chan int, 1)}
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	into := i.buffer[:min(len(p), len(i.buffer))]
	go func() {
		n, err := i.from.Read(into)
		i.err = err
		i.done <- n
	}()
	select {
	case n := <-i.done:
		return copy(p, into[:n]), i.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}
