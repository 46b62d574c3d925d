package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongInputIsOneLineAndExit2(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct{ args, says string }{
		{"stray", `"stray"`},
		{"compare stray", `"stray"`},
		{"--config x.yaml", "--config"},
		{"compare --config=", "--config is empty"},
		{"compare --config none.yaml", "none.yaml"},
		{"compare --config none.yaml --config none.yaml", "twice"},
		{"compare --set a.refresh.policy=swr", "--set"},
		{"compare --config x.yaml --combinations l1", "--combinations: with --config"},
		{"compare --config x.yaml --policies fixed", "refresh.policy"},
		{"compare --config x.yaml --ttl 1s", "lifetime.ttl"},
		{"compare --config x.yaml --stale 1s", "--stale"},
		{"compare --config x.yaml --beta 2", "--beta"},
		{"compare --config x.yaml --l1 5", "--l1"},
		{"compare --config x.yaml --l2 5", "--l2"},
		{"compare --config x.yaml --redis redis://localhost --combinations l1+l3", "--combinations"},
		{"compare --config x.yaml --redis redis://localhost", "--redis"},
		{"compare --config x.yaml --memcached localhost:11211", "--memcached"},
		{"validate", "no file"},
		{"validate none.yaml", "none.yaml"},
		{"validate --nonsense x.yaml", "--nonsense"},
		{"validate --keys 5 x.yaml", "--keys"},
		{"validate " + dir, dir},
		{"fleet stray", `"stray"`},
		{"fleet --processes 1", "--processes"},
		{"fleet --processes 65", "--processes"},
		{"fleet --callers 0", "--callers"},
		{"fleet --keys 0", "--keys"},
		{"fleet --processes 64 --callers 1000 --keys 1000", "reads at once"},
		{"fleet --origin-latency 0", "--origin-latency"},
		{"fleet --lease-life 1ms", "--lease-life"},
		{"fleet --l1-ttl 0s", "--l1-ttl"},
		{"fleet --seed -1", "--seed"},
		{"fleet --scenario warm", `"warm"`},
		{"fleet --backend etcd", `"etcd"`},
		{"fleet --backend redis --memcached localhost:11211", "--backend redis"},
		{"fleet --backend memcached --redis redis://localhost", "--backend memcached"},
		{"fleet --redis redis://localhost --memcached localhost:11211", "--memcached"},
		{"fleet --redis=", "--redis"},
		{"fleet --redis http://localhost", "--redis"},
		{"fleet --redis redis://127.0.0.1:1", "127.0.0.1:1 does not answer"},
		{"fleet --memcached=", "--memcached"},
		{"fleet --memcached 127.0.0.1:1", "127.0.0.1:1 does not answer"},
		{"fleet --json=", "--json"},
		{"fleet --json " + dir, "--json"},
		{"--nonsense", "--nonsense"},
		{"--keys 0", "--keys 0"},
		{"--keys -5", "--keys"},
		{"--keys 1e9", "--keys"},
		{"--keys many", "--keys"},
		{"--keys 99999999999", "--keys"},
		{"--skew -1", "--skew"},
		{"--skew NaN", "--skew NaN"},
		{"--skew 11", "--skew"},
		{"--rate 0", "--rate"},
		{"--rate -1", "--rate"},
		{"--rate NaN", "--rate NaN"},
		{"--rate Inf", "--rate"},
		{"--rate 1 --seconds 0.1", "--seconds"},
		{"--seconds 0", "--seconds"},
		{"--seconds -1", "--seconds"},
		{"--seconds NaN", "--seconds NaN"},
		{"--seconds 1e300", "--seconds"},
		{"--seconds 3600 --rate 1e6", "reads a row"},
		{"--warmup-seconds -1", "--warmup-seconds"},
		{"--warmup-seconds NaN", "--warmup-seconds"},
		{"--closed-seconds 0", "--closed-seconds"},
		{"--ttl 0", "--ttl"},
		{"--ttl -1s", "--ttl"},
		{"--ttl 5", "--ttl"},
		{"--stale 0s", "--stale"},
		{"--beta 0", "--beta"},
		{"--beta NaN", "--beta"},
		{"--value-size 15", "--value-size"},
		{"--value-size 2000000", "--value-size"},
		{"--origin-latency -1ms", "--origin-latency"},
		{"--slow -1ms", "--slow"},
		{"--l1 0", "--l1"},
		{"--l2 -1", "--l2"},
		{"--concurrency 0", "--concurrency"},
		{"--seed -1", "--seed"},
		{"--seed x", "--seed"},
		{"--combinations l4", "l4"},
		{"--combinations l3+l1", "l3+l1"},
		{"--combinations l1+l1", "l1+l1"},
		{"--combinations l1,l1", "twice"},
		{"--combinations=", "--combinations"},
		{"--combinations l1,", "--combinations"},
		{"--policies lru", "lru"},
		{"--policies swr,swr", "twice"},
		{"--policies=", "--policies"},
		{"--redis=", "--redis"},
		{"--redis localhost:6379", "--redis"},
		{"--redis http://localhost", "--redis"},
		{"--redis redis://127.0.0.1:1", "127.0.0.1:1 does not answer"},
		{"--redis redis://127.0.0.1:1 --combinations l1", "l3"},
		{"--memcached=", "--memcached"},
		{"--memcached localhost", "--memcached"},
		{"--memcached 127.0.0.1:1", "127.0.0.1:1 does not answer"},
		{"--json=", "--json"},
		{"--json " + dir, "--json"},
		{"--json " + filepath.Join(dir, "none", "x.json"), "none"},
		{"--json " + filepath.Join(dir, "x.json") + " --redis redis://127.0.0.1:1", "does not answer"},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, stdout, stderr := bench(t.Context(), strings.Fields(test.args)...)
			if code != exitUsage || stdout != "" {
				t.Errorf("got exit code %d and stdout %q, want %d and none", code, stdout, exitUsage)
			}
			wantOneLine(t, stderr, test.says)
		})
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func TestSecretsAreNotTold(t *testing.T) {
	for _, url := range []string{
		"redis://user:hunter2@127.0.0.1:1",
		"redis://127.0.0.1:1?password=hunter2",
		"redis://user:hunter2@127.0.0.1:port",
		"redis://user:hunter2%zz@127.0.0.1:1",
		"http://user:hunter2@127.0.0.1:1",
	} {
		code, stdout, stderr := bench(t.Context(), "--redis", url)
		if code2, stdout2, stderr2 := bench(t.Context(), "fleet", "--redis", url); code2 != exitUsage || strings.Contains(stdout2+stderr2, "hunter2") {
			t.Errorf("fleet, %s: got exit code %d, %q, %q", url, code2, stdout2, stderr2)
		}
		if code != exitUsage || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%s: got exit code %d, %q, %q", url, code, stdout, stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "compare --help", "validate --help", "fleet --help", "help", "help trace"} {
		code, stdout, stderr := bench(t.Context(), strings.Fields(args)...)
		if code != exitOK || stderr != "" || !strings.Contains(stdout, "Examples:") {
			t.Errorf("%s: got exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}
