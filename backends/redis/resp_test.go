package redis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// respServer speaks as much of RESP2 as a client that reads needs. It answers a GET by what get
// returns for the key on that connection, of which the first has the number 1.
type respServer struct {
	net.Listener
	get func(conn int, key string) string

	mu    sync.Mutex
	conns []net.Conn
}

func serveRESP(t *testing.T, get func(conn int, key string) string) *respServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &respServer{Listener: l, get: get}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			n := len(s.conns)
			s.mu.Unlock()
			serving.Go(func() { s.serve(c, n) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.each(func(c net.Conn) { _ = c.Close() })
		serving.Wait()
	})
	return s
}

func (s *respServer) each(do func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		do(c)
	}
}

func (s *respServer) serve(c net.Conn, n int) {
	r := bufio.NewReader(c)
	number := func() int {
		line, _ := r.ReadString('\n')
		n, _ := strconv.Atoi(strings.Trim(line, "*$\r\n"))
		return n
	}
	for {
		args := make([]string, number())
		for i := range args {
			arg := make([]byte, number()+2)
			if _, err := io.ReadFull(r, arg); err != nil {
				return
			}
			args[i] = string(arg[:len(arg)-2])
		}
		if len(args) == 0 {
			return
		}
		answer := "+OK\r\n"
		switch strings.ToLower(args[0]) {
		case "get":
			answer = s.get(n, args[1])
		case "hello":
			answer = "-ERR unknown command 'HELLO'\r\n"
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// bulk is a value as a reply.
func bulk(value string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(value), value) }
