package memcached

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/internal/gather"
)

// replying returns a reader whose server sends the text, in parts of that many bytes, when it has
// been asked, and then nothing more or the end of the connection. What it was asked is sent.
func replying(t *testing.T, text string, part int, ends bool) (*reader, <-chan string) {
	near, far := net.Pipe()
	asked := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		request := make([]byte, 1<<16)
		n, _ := far.Read(request)
		asked <- string(request[:n])
		for rest := []byte(text); len(rest) > 0; {
			n := min(part, len(rest))
			if _, err := far.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
		if ends {
			_ = far.Close()
		}
	}()
	t.Cleanup(func() {
		_ = near.Close()
		<-done
		_ = far.Close()
	})
	return newReader(near, time.Minute), asked
}

func TestReader(t *testing.T) {
	large := strings.Repeat("0123456789\r\nEND\r\n", wholly/8)
	for name, c := range map[string]struct {
		keys string
		text string
		want string // key=flags:value, in the order of the keys
	}{
		"one":            {"a", "VALUE a 0 1\r\nx\r\nEND\r\n", "a=0:x"},
		"none":           {"a b", "END\r\n", ""},
		"empty":          {"a", "VALUE a 0 0\r\n\r\nEND\r\n", "a=0:"},
		"with a version": {"a", "VALUE a 1414678529 2 18446744073709551615\r\nxy\r\nEND\r\n", "a=1414678529:xy"},
		"some":           {"a b c d", "VALUE b 1 1\r\nB\r\nVALUE d 2 1\r\nD\r\nEND\r\n", "b=1:B d=2:D"},
		"in another order": {"a b c", "VALUE c 0 1\r\nC\r\nVALUE a 0 1\r\nA\r\nVALUE b 0 1\r\nB\r\nEND\r\n",
			"a=0:A b=0:B c=0:C"},
		"like the protocol": {"a b", "VALUE a 0 12\r\nEND\r\nVALUE b\r\nEND\r\n", "a=0:END\r\nVALUE b"},
		"large":             {"a b", fmt.Sprintf("VALUE a 0 %d\r\n%s\r\nVALUE b 0 1\r\nB\r\nEND\r\n", len(large), large), "a=0:" + large + " b=0:B"},
	} {
		for _, part := range []int{1, 2, 7, 1 << 20} {
			if len(c.text) > 10_000 && part < 1000 {
				part *= 10_000
			}
			keys := strings.Fields(c.keys)
			answers := make([]gather.Answer[item], len(keys))
			r, asked := replying(t, c.text, part, false)
			if err := r.read(keys, answers); err != nil {
				t.Errorf("%s in parts of %d: %v", name, part, err)
			}
			if got, want := <-asked, "get "+c.keys+"\r\n"; got != want {
				t.Errorf("%s: asked %q, want %q", name, got, want)
			}
			var got []string
			for i, a := range answers {
				if a.Value.value != nil {
					got = append(got, fmt.Sprintf("%s=%d:%s", keys[i], a.Value.flags, a.Value.value))
				}
				if cap(a.Value.value) != len(a.Value.value) {
					t.Errorf("%s: a value has room behind it", name)
				}
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("%s in parts of %d: got %.100q, want %.100q", name, part, got, c.want)
			}
		}
	}
}

func TestAReaderTakesNoNonsense(t *testing.T) {
	for text, want := range map[string]string{
		"ERROR\r\n":                                 "ERROR",
		"SERVER_ERROR out of memory\r\n":            "SERVER_ERROR",
		"CLIENT_ERROR bad\r\n":                      "CLIENT_ERROR",
		"VALUE a 0 1\r\nx\r\nSERVER_ERROR late\r\n": "SERVER_ERROR",
		"hello secret\r\n":                          "unexpected",
		"\r\n":                                      "unexpected",
		"END\n":                                     "unexpected",
		"STORED\r\n":                                "unexpected",
		"VALUE\r\n":                                 "unexpected",
		"VALUE a\r\n":                               "unexpected",
		"VALUE a 0\r\n":                             "unexpected",
		"VALUE a 0 \r\n":                            "unexpected",
		"VALUE a 0 -1\r\n":                          "unexpected",
		"VALUE a -1 1\r\nx\r\n":                     "unexpected",
		"VALUE a 4294967296 1\r\nx\r\n":             "unexpected",
		"VALUE a 0 4294967296\r\n":                  "unexpected",
		"VALUE a 0 99999999999999999999999\r\n":     "unexpected",
		"VALUE a 0 0x1\r\n":                         "unexpected",
	} {
		r, _ := replying(t, text, 1<<20, true)
		err := r.read([]string{"a", "b"}, make([]gather.Answer[item], 2))
		var reply *ReplyError
		if !errors.As(err, &reply) || reply.FailureKind() != want {
			t.Errorf("%q: %v, want a ReplyError of kind %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: its error quotes it", text)
		}
	}
	for text, want := range map[string]error{
		"":                              io.EOF,
		"VAL":                           io.EOF,
		"VALUE a 0 5\r\nxy":             io.ErrUnexpectedEOF,
		"VALUE a 0 5\r\n":               io.EOF,
		"VALUE a 0 1\r\nx\r\n":          io.EOF,
		"VALUE a 0 4294967295\r\nxy":    io.ErrUnexpectedEOF, // and takes no memory for it
		"VALUE a 0 1\r\nxyz\r\nEND\r\n": errNoEnd,
		"VALUE c 0 1\r\nx\r\nEND\r\n":   errNotAsked,
		"VALUE aa 0 1\r\nx\r\nEND\r\n":  errNotAsked,
		"VALUE  0 1\r\nx\r\nEND\r\n":    errNotAsked,
		"VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\ny\r\nEND\r\n": errNotAsked,
		"END\r\nEND\r\n":                  errMore,
		strings.Repeat("x", 2*readBuffer): nil, // an error of whatever kind
	} {
		r, _ := replying(t, text, 1<<20, true)
		if err := r.read([]string{"a", "b"}, make([]gather.Answer[item], 2)); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", text, err, want)
		}
	}
}

func TestAReaderWaitsForEachItem(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	r := newReader(near, 100*time.Millisecond)
	go func() {
		_, _ = far.Read(make([]byte, 100))
		_, _ = io.WriteString(far, "VALUE a 0 1\r\nx")
	}()
	begun := time.Now()
	var timeout net.Error
	if err := r.read([]string{"a"}, make([]gather.Answer[item], 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("half an item: %v after %v, want a timeout", err, time.Since(begun))
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("VALUE a 0 1\r\nx\r\nVALUE b 3 2 77\r\nxy\r\nEND\r\n"))
	f.Add([]byte("SERVER_ERROR\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newReader(script{bytes.NewReader(text)}, time.Second)
		answers := make([]gather.Answer[item], 2)
		err := r.read([]string{"a", "b"}, answers)
		if err == nil && !bytes.HasSuffix(text, []byte("END\r\n")) {
			t.Errorf("%q is taken for an answer", text)
		}
		for i, a := range answers {
			if a.Value.value != nil && !bytes.Contains(text, append(append([]byte{}, a.Value.value...), "\r\n"...)) {
				t.Errorf("%q: answer %d is %q", text, i, a.Value.value)
			}
		}
	})
}

// script is a connection whose other side has sent all that it ever will.
type script struct{ io.Reader }

func (script) Write(b []byte) (int, error)      { return len(b), nil }
func (script) Close() error                     { return nil }
func (script) LocalAddr() net.Addr              { return nil }
func (script) RemoteAddr() net.Addr             { return nil }
func (script) SetDeadline(time.Time) error      { return nil }
func (script) SetReadDeadline(time.Time) error  { return nil }
func (script) SetWriteDeadline(time.Time) error { return nil }
