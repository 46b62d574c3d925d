package servers

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Memcached starts a memcached. Further args go to the server and override those
// given here.
func Memcached(t testing.TB, args ...string) *Server {
	t.Helper()
	return run(t, spec{
		binary: "memcached",
		args: func(port int, _ string) []string {
			own := []string{"-l", host, "-p", strconv.Itoa(port), "-U", "0", "-t", "2"}
			if os.Geteuid() == 0 {
				// It refuses to run as root unless told to.
				if u, err := user.Current(); err == nil {
					own = append(own, "-u", u.Username)
				}
			}
			return append(own, args...)
		},
		ready: memcachedReady,
	})
}

func memcachedReady(addr string) error {
	conn, err := dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("version\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "VERSION") {
		err = fmt.Errorf("unexpected answer %q", line)
	}
	return err
}

// dial connects to a server that is about to be asked one thing.
func dial(addr string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(time.Second))
}
