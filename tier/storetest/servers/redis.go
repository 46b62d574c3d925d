package servers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// Redis starts a redis-server that keeps nothing on disk. Further args go to the
// server and override those given here: Redis(t, "--maxmemory", "1mb").
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	return run(t, spec{
		binary: "redis-server",
		args: func(port int, dir string) []string {
			return append([]string{
				"--bind", host, "--port", strconv.Itoa(port), "--dir", dir,
				"--save", "", "--appendonly", "no",
				"--hz", "100", // looks for a signal to end, and for idle clients, more often
			}, args...)
		},
		ready: redisReady,
	})
}

// redisReady takes any answer but LOADING: a server that asks for a password is
// up.
func redisReady(addr string) error {
	_, err := redisDo(addr, "PING")
	if reply := redisError(""); errors.As(err, &reply) && !strings.HasPrefix(string(reply), "LOADING") {
		return nil
	}
	return err
}

// redisError is an error that the server answered.
type redisError string

func (e redisError) Error() string { return string(e) }

// redisDo sends one command on a connection of its own and returns the answer: a
// string, or an integer as text.
func redisDo(addr string, args ...string) (string, error) {
	conn, err := dial(addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", redisError(rest)
	case '$':
		size, err := strconv.Atoi(rest)
		if err != nil || size < 0 {
			return "", err
		}
		body := make([]byte, size)
		_, err = io.ReadFull(r, body)
		return string(body), err
	default:
		return "", fmt.Errorf("unexpected answer %q", line)
	}
}
