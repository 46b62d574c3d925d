package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// check is one promise and how it is checked: each on new stores.
type check[S any] struct {
	name string
	run  func(t testing.TB, s S)
}

// runChecks runs each check as a subtest, in virtual time if so wished.
func runChecks[S any](t *testing.T, virtual bool, s S, checks []check[S]) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if virtual {
				synctest.Test(t, func(t *testing.T) { c.run(t, s) })
				return
			}
			c.run(t, s)
		})
	}
}

// soon is longer than any call of a store may take whose context has ended.
const soon = 5 * time.Second

// rounding is how much longer than its ttl a byte store may keep a value: it counts
// in seconds at worst, and rounds up.
const rounding = 3 * time.Second

// keys of every kind (C53), some of them easily taken for one another.
var keys = func() []string {
	x250 := strings.Repeat("x", 250)
	return []string{
		"", " ", "  ", "a", "A", "a ", " a", "a b", "ab", "a\tb", "\n", "\r\n", "a\r\nb", "\x00", "a\x00", "a\x00b", "\x7f",
		"0", "00", "-0", "a:b", "a::b", "a/b", "a%20b", "a+b", "{a}", "{a}b", "*", "?", "[a]", "\\", "\"", "'", "$", "gets a",
		x250, x250 + "x", x250 + "y", strings.Repeat("日", 83), strings.Repeat("日", 84), strings.Repeat("日", 85),
		"é", "e\u0301", // composed and decomposed
		"\xff", "\xfe", "\xff\xfe", "\xc3\x28", "\ufffd",
		strings.Repeat("k", 1024), strings.Repeat("k", 1023) + "l", "l" + strings.Repeat("k", 1023),
	}
}()

// eventually waits, in steps of a moment of the store's time, until ok, at most for
// the limit, and reports whether it came to be.
func eventually(sleep func(time.Duration), limit time.Duration, ok func() bool) bool {
	step := limit/200 + 1
	for waited := time.Duration(0); ; waited += step {
		if ok() {
			return true
		}
		if waited >= limit {
			return false
		}
		sleep(step)
	}
}

// group runs functions concurrently. A panic in one is a failure of the test.
type group struct {
	t  testing.TB
	wg sync.WaitGroup
}

func (g *group) run(n int, f func(i int)) {
	for i := range n {
		g.wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					g.t.Errorf("the store panicked: %v", p)
				}
			}()
			f(i)
		})
	}
}

func (g *group) wait() { g.wg.Wait() }

// returnsSoon fails the test if f, given a context that has ended or ends soon,
// takes long.
func returnsSoon(t testing.TB, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > soon {
		t.Errorf("%s took %v with a context that had ended", what, took.Round(time.Millisecond))
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// brief shortens a key for messages.
func brief(key string) string {
	if len(key) > 40 {
		return fmt.Sprintf("%.37q... (%d bytes)", key, len(key))
	}
	return fmt.Sprintf("%q", key)
}

func closeStore(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
