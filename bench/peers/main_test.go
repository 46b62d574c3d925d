package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// runPeers runs the command and returns what it did.
func runPeers(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

// testPeers returns a run whose warnings fail the test.
func testPeers(t *testing.T) *peers {
	t.Helper()
	var stderr bytes.Buffer
	t.Cleanup(func() {
		if stderr.Len() > 0 {
			t.Errorf("warnings:\n%s", &stderr)
		}
	})
	return newPeers(&settings{Rounds: 1, Seconds: 0.001, Keys: minKeys, Entries: minEntries}, &stderr)
}

// testServer returns a server for the test; it fails where the program is not there.
func testServer(t *testing.T, kind serverKind) string {
	t.Helper()
	if kind == noServer {
		return ""
	}
	s, err := useServer(t.Context(), kind, "")
	if err != nil {
		t.Fatalf("%v (make servers installs it)", err)
	}
	t.Cleanup(s.stop)
	return s.address
}

// wantOneLine checks that stderr is one line with the text in it.
func wantOneLine(t *testing.T, stderr, text string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") || !strings.Contains(stderr, text) {
		t.Errorf("stderr: got %q, want one line with %q", stderr, text)
	}
}
