package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestRealServers(t *testing.T) {
	redis, memcached := servers.Redis(t), servers.Memcached(t)
	second := servers.Memcached(t)
	client := goredis.NewClient(&goredis.Options{Addr: redis.Addr()})
	defer client.Close()
	if err := client.Set(t.Context(), "terrace-bench:another's", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"--redis", "redis://" + redis.Addr(), "--memcached", memcached.Addr() + "," + second.Addr(),
		"--combinations", "l1,l1+l3", "--policies", "fixed,xfetch", "--json", "-",
	}, quick...)
	code, stdout, stderr := bench(t.Context(), args...)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, stderr %q", code, stderr)
	}
	p := parse(t, stdout)
	var names []string
	for _, r := range p.Rows {
		checkRow(t, r, 200)
		name := r["combination"].(string)
		names = append(names, name)
		if strings.Contains(name, "l3") && r["hits"].(map[string]any)["l3"] == 0.0 {
			t.Errorf("%s: l3 answered nothing", name)
		}
	}
	if got, want := fmt.Sprint(names), "[l1 l1 l1+l3(redis) l1+l3(redis) l1+l3(memcached) l1+l3(memcached)]"; got != want {
		t.Errorf("rows: got %v, want %v", got, want)
	}
	if strings.Contains(stdout, "EMBEDDED") {
		t.Error("an embedded Redis is spoken of")
	}
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || keys[0] != "terrace-bench:another's" {
		t.Errorf("keys in Redis afterwards: got %v, %v, want only another's", keys, err)
	}
}

func TestServerThatAnswersNothingIsExit2(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, args := range [][]string{
		{"--redis", "redis://" + l.Addr().String()},
		{"--memcached", l.Addr().String()},
	} {
		began := time.Now()
		code, stdout, stderr := bench(t.Context(), args...)
		if took := time.Since(began); code != exitUsage || stdout != "" || took > 6*time.Second {
			t.Errorf("%v: got exit code %d, stdout %q after %v", args, code, stdout, took)
		}
		wantOneLine(t, stderr, "does not answer")
	}
}

// One of several memcached servers that is down is found before anything is measured.
func TestOneServerOfSeveralIsDown(t *testing.T) {
	up := servers.Memcached(t)
	code, _, stderr := bench(t.Context(), "--memcached", up.Addr()+",127.0.0.1:1")
	if code != exitUsage {
		t.Errorf("got exit code %d", code)
	}
	wantOneLine(t, stderr, "127.0.0.1:1")
}

func TestServerDiesInTheMiddle(t *testing.T) {
	redis := servers.Redis(t)
	code, stdout, stderr := benchOnTerminal(t.Context(), onStep("[2/2]", time.Second, redis.Kill),
		"--redis", "redis://"+redis.Addr(), "--combinations", "l1,l1+l3", "--policies", "fixed",
		"--rate", "1000", "--seconds", "3", "--warmup-seconds", "0.5", "--closed-seconds", "0.05")
	if code != exitFailure {
		t.Errorf("got exit code %d, want %d", code, exitFailure)
	}
	wantOneLine(t, stderr, "l1+l3, fixed", redis.Addr(), "does not answer")
	if !strings.Contains(stdout, "\nl1 ") {
		t.Errorf("the row that was done is not printed:\n%s", stdout)
	}
}

func TestInterruptPrintsWhatIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var cancelled time.Time
	cancels := onStep("[3/15]", 200*time.Millisecond, func() {
		cancelled = time.Now()
		cancel()
	})
	code, stdout, stderr := benchOnTerminal(ctx, cancels, "--json", "-",
		"--rate", "1000", "--seconds", "0.3", "--warmup-seconds", "0.1", "--closed-seconds", "0.05")
	if code != exitInterrupted {
		t.Errorf("got exit code %d, want %d", code, exitInterrupted)
	}
	if took := time.Since(cancelled); took > time.Second {
		t.Errorf("stopped %v after it was told to", took)
	}
	wantOneLine(t, stderr, "interrupted")
	p := parse(t, stdout)
	if n := len(p.Rows); n < 2 || n > 14 || p.Environment["complete"] != false {
		t.Errorf("got %d rows, complete: %v", n, p.Environment["complete"])
	}
	for _, r := range p.Rows {
		checkRow(t, r, 300)
	}
}

func TestInterruptedBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := bench(ctx, "--json", "-")
	if code != exitInterrupted || stdout != "" {
		t.Errorf("got exit code %d, stdout %q", code, stdout)
	}
	wantOneLine(t, stderr, "interrupted")
}
