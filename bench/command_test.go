package main

import (
	"strings"
	"testing"
)

// What is mistyped ends with a line that says what to type.
func TestMistyped(t *testing.T) {
	for _, test := range []struct {
		args string
		want []string
	}{
		{"frobnicate", []string{`no command "frobnicate"`, "want advise, compare"}},
		{"help frobnicate", []string{`no command "frobnicate"`, "want advise, compare"}},
		{"--polices fixed", []string{"unknown flag: --polices", "see --help"}},
		{"trace --seed -1 x", []string{"--seed", "see --help"}},
		{"compare caches.yaml", []string{`unexpected argument "caches.yaml"`, "want --config caches.yaml"}},
		{"stampede caches.yaml", []string{"everything is set by flags, see --help"}},
	} {
		code, stdout, stderr := bench(t.Context(), strings.Fields(test.args)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q", test.args, code, stdout)
		}
		wantOneLine(t, stderr, test.want...)
	}
}
