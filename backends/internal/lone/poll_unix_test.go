//go:build unix

package lone

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func pair(t *testing.T) (p *poll, near, far net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	if p = newPoll(near); p == nil {
		t.Fatal("not polled")
	}
	return p, near, far
}

func TestWhatIsPolledIsRead(t *testing.T) {
	p, _, far := pair(t)
	text := strings.Repeat("0123456789", 100_000)
	go func() {
		for part := text; part != ""; {
			n := min(len(part), 7777)
			_, _ = io.WriteString(far, part[:n])
			part = part[n:]
		}
		_ = far.Close()
	}()
	got, err := io.ReadAll(bufio.NewReader(p))
	if err != nil || string(got) != text {
		t.Errorf("read %d bytes, %v, want %d", len(got), err, len(text))
	}
	if n, err := p.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %d, %v", n, err)
	}
	if n, err := p.Read(nil); n != 0 || err != nil {
		t.Errorf("nothing: %d, %v", n, err)
	}
}

// Where looking for an answer is in vain it is done for one read of mostRest+1.
func TestLookingInVainIsDoneSeldom(t *testing.T) {
	p, near, far := pair(t)
	var looked []int
	for i := range 200 {
		_ = near.SetReadDeadline(time.Now().Add(time.Millisecond))
		rest := p.left == 0
		if _, err := p.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if rest {
			looked = append(looked, i)
		}
	}
	if want := []int{0, 2, 6, 14, 30, 62, 126, 190}; fmt.Sprint(looked) != fmt.Sprint(want) {
		t.Errorf("looked at reads %v, want %v", looked, want)
	}
	_ = near.SetReadDeadline(time.Time{})
	for p.left > 0 || p.rest > 0 { // an answer that is there when it is looked for
		if _, err := far.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := p.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
}

func TestErrorsOfASocket(t *testing.T) {
	p, near, far := pair(t)
	_ = far.(*net.TCPConn).SetLinger(0)
	_ = far.Close() // by a reset
	if _, err := p.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("reset: %v", err)
	}
	_ = near.Close()
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v, want net.ErrClosed", err)
	}
	if newPoll(foreign{near}) != nil {
		t.Error("what is no socket is polled")
	}
}
