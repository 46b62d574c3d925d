package coordinator_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// hostileServer accepts connections, and answers each command in its own way: with a text,
// and then it closes the connection, or goes silent, or neither.
type hostileServer struct {
	listener net.Listener
	answer   string
	then     string // "close", "silence" or ""
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func startHostile(t *testing.T, answer, then string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &hostileServer{listener: l, answer: answer, then: then}
	s.running.Go(s.accept)
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.running.Wait()
	})
	return l.Addr().String()
}

func (s *hostileServer) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.running.Go(func() {
			defer c.Close()
			s.serve(bufio.NewReader(c), c)
		})
	}
}

func (s *hostileServer) serve(r *bufio.Reader, c net.Conn) {
	for {
		name, err := command(r)
		if err != nil {
			return
		}
		answer := s.answer
		switch name { // what go-redis begins with is answered as an old server does
		case "hello":
			answer = "-ERR unknown command\r\n"
			if strings.HasPrefix(s.answer, "-WRONGPASS") {
				answer = s.answer
			}
		case "client":
			answer = "+OK\r\n"
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
		switch {
		case answer != s.answer:
		case s.then == "close":
			return
		case s.then == "silence":
			_, _ = io.Copy(io.Discard, r)
			return
		}
	}
}

// command reads one command of either protocol, and returns the name of it.
func command(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return "", io.ErrUnexpectedEOF
	}
	if n, ok := strings.CutPrefix(fields[0], "*"); ok {
		count, err := strconv.Atoi(n)
		if err != nil {
			return "", err
		}
		name := ""
		for i := range count {
			size, err := r.ReadString('\n')
			if err != nil {
				return "", err
			}
			length, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(size, "$")))
			if err != nil {
				return "", err
			}
			body := make([]byte, length+2)
			if _, err := io.ReadFull(r, body); err != nil {
				return "", err
			}
			if i == 0 {
				name = strings.ToLower(string(body[:length]))
			}
		}
		return name, nil
	}
	for _, storing := range []string{"set", "add", "cas"} { // with a block of data
		if fields[0] != storing || len(fields) < 5 {
			continue
		}
		length, err := strconv.Atoi(fields[4])
		if err != nil {
			return "", err
		}
		if _, err := io.CopyN(io.Discard, r, int64(length)+2); err != nil {
			return "", err
		}
	}
	return fields[0], nil
}

// Servers that answer what none should cost a reader the tier's budget and no more, are
// counted by kind, and neither values nor passwords come into logs and errors.
func TestHostileServers(t *testing.T) {
	const (
		budget   = 50 * time.Millisecond
		slack    = 500 * time.Millisecond // of a busy machine
		value    = "v4lue-of-the-origin"
		password = "p4ssword-of-the-user"
	)
	type server struct{ answer, then string }
	redises := map[string]server{
		"garbage":              {"\x00\xff\x13garbage\n\n$$$", ""},
		"another protocol":     {"HTTP/1.1 400 Bad Request\r\n\r\n", "close"},
		"closes in mid-reply":  {"$100\r\nabc", "close"},
		"stops in mid-reply":   {"$100\r\nabc", "silence"},
		"closes":               {"", "close"},
		"never answers":        {"", "silence"},
		"a negative length":    {"$-7\r\n", ""},
		"nesting":              {strings.Repeat("*1\r\n", 100_000), "silence"},
		"another type":         {"*2\r\n:1\r\n:2\r\n", ""},
		"BUSY":                 {"-BUSY Redis is busy running a script.\r\n", ""},
		"TRYAGAIN":             {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", ""},
		"ASK to nowhere":       {"-ASK 1 127.0.0.1:1\r\n", ""},
		"MOVED to nowhere":     {"-MOVED 1 127.0.0.1:1\r\n", ""},
		"WRONGPASS":            {"-WRONGPASS invalid username-password pair\r\n", ""},
		"NOAUTH":               {"-NOAUTH Authentication required.\r\n", ""},
		"an error that quotes": {"-ERR unknown command 'set', with args beginning with: 'k' '" + value + "'\r\n", ""},
	}
	memcacheds := map[string]server{
		"garbage":             {"\x00\xff\x13garbage\n\n", ""},
		"another protocol":    {"HTTP/1.1 400 Bad Request\r\n\r\n", "close"},
		"closes in mid-reply": {"VALUE k 0 100 1\r\nabc", "close"},
		"stops in mid-reply":  {"VALUE k 0 100 1\r\nabc", "silence"},
		"closes":              {"", "close"},
		"never answers":       {"", "silence"},
		"an item too large":   {"VALUE k 0 99999999999 1\r\n", "silence"},
		"a negative length":   {"VALUE k 0 -7 1\r\n", ""},
		"a key not asked for": {"VALUE other 0 1 1\r\na\r\nEND\r\n", ""},
		"out of memory":       {"SERVER_ERROR out of memory storing object\r\n", ""},
		"ERROR":               {"ERROR\r\n", ""},
	}
	check := func(t *testing.T, store tier.Bytes) {
		var logged bytes.Buffer
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{
				{Name: "l1", Store: lru.New[string, string](100)},
				{Name: "l3", Store: tier.Encode[string](store, codec.String()), Timeout: budget, Breaker: tier.Breaker{Off: true}},
			},
			Load:   func(context.Context, string) (string, error) { return value, nil },
			Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		})
		timed := func(what string, calls time.Duration, do func()) {
			began := time.Now()
			do()
			if took := time.Since(began); took > calls*budget+slack {
				t.Errorf("%s took %v", what, took)
			}
		}
		for i := range 3 {
			key := fmt.Sprint("k", i)
			timed("a Get", 2, func() { wantGet(t, c, key, value) }) // a read, and what was loaded is to be stored
			timed("a Get of what memory has", 0, func() { wantGet(t, c, key, value) })
		}
		timed("a Set", 1, func() {
			if err := c.Set(ctx, "set", value); err != nil && (strings.Contains(err.Error(), value) || strings.Contains(err.Error(), password)) {
				t.Errorf("Set's error tells too much: %v", err)
			}
			wantGet(t, c, "set", value)
		})
		s := c.Stats().Tiers[1]
		kinds := uint64(0)
		for _, n := range s.Failures {
			kinds += n
		}
		if s.Errors+s.Unreadable == 0 || kinds != s.Errors {
			t.Errorf("%d errors, %d unreadable, by kind %v", s.Errors, s.Unreadable, s.Failures)
		}
		t.Logf("%v", s.Failures)
		closing, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := c.Close(closing); err != nil {
			t.Errorf("Close: %v", err)
		}
		if text := logged.String(); strings.Contains(text, value) || strings.Contains(text, password) {
			t.Errorf("the log tells too much: %s", text)
		}
	}
	for name, s := range redises {
		t.Run("redis/"+name, func(t *testing.T) {
			t.Parallel()
			store, err := redis.Open("redis://:"+password+"@"+startHostile(t, s.answer, s.then), redis.Options{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, store)
		})
	}
	for name, s := range memcacheds {
		t.Run("memcached/"+name, func(t *testing.T) {
			t.Parallel()
			store, err := memcached.Open(memcached.Options{Servers: []string{startHostile(t, s.answer, s.then)}})
			if err != nil {
				t.Fatal(err)
			}
			check(t, store)
		})
	}
}
