//go:build unix

package lone

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

const (
	// looks is how often it is looked for an answer before it is waited for. That takes some
	// tens of microseconds. A goroutine that waits is woken as long after the answer has come, for
	// which its thread, and where nothing else runs a core, have to be woken. Others' goroutines do
	// not run between two looks: where there are many that would be a long time.
	looks = 32

	// mostRest is how many reads in a row are waited for at once where looking was in vain.
	mostRest = 63
)

// poll reads from a socket whose other side may answer within microseconds, as on the same
// machine, by looking for the answer before it waits. Where looking is in vain it is done seldom
// (adaptive polling, as of locks that spin before they sleep). It is used by one goroutine at a
// time.
type poll struct {
	conn syscall.RawConn
	rest int // reads that do not look, of which
	left int // are left
	look func(fd uintptr) bool

	// Of the read under way.
	b   []byte
	n   int
	err error
}

// newPoll returns nil for what is no socket of its own, as that of TLS.
func newPoll(c net.Conn) *poll {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	conn, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	p := &poll{conn: conn}
	p.look = p.lookFor
	return p
}

// Read implements [io.Reader].
func (p *poll) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.b = b
	err := p.conn.Read(p.look)
	n, readErr := p.n, p.err
	p.b, p.n, p.err = nil, 0, nil
	switch {
	case err != nil:
		return 0, err
	case readErr != nil:
		return 0, os.NewSyscallError("read", readErr)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// lookFor reads what there is, and reports false if there is nothing yet.
func (p *poll) lookFor(fd uintptr) bool {
	times := looks
	if p.left > 0 {
		p.left--
		times = 1
	}
	for range times {
		if p.read(int(fd)) {
			if times > 1 {
				p.rest = 0
			}
			return true
		}
	}
	if times > 1 {
		p.rest = min(2*p.rest+1, mostRest)
		p.left = p.rest
	}
	return false
}

func (p *poll) read(fd int) bool {
	for {
		p.n, p.err = syscall.Read(fd, p.b)
		switch {
		case errors.Is(p.err, syscall.EINTR):
		case errors.Is(p.err, syscall.EAGAIN):
			return false
		default:
			return true
		}
	}
}
