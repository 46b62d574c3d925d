package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/tier/storetest/servers"
)

// compareFiles runs the comparison of documents, quickly.
func compareFiles(ctx context.Context, args []string, files ...string) (code int, stdout, stderr string) {
	return bench(ctx, comparing(args, files...)...)
}

// comparing returns what to call the command with.
func comparing(args []string, files ...string) []string {
	all := append([]string{"compare"}, quick...)
	for _, f := range files {
		all = append(all, "--config", f)
	}
	return append(all, args...)
}

// runs is what a row says that runs.
func runs(r map[string]any) string {
	var tiers []string
	for _, t := range r["tiers"].([]any) {
		t := t.(map[string]any)
		tiers = append(tiers, fmt.Sprint(t["name"], ":", t["eviction"]))
	}
	return fmt.Sprint(r["cache"], " ", r["policy"], " ", strings.Join(tiers, " "))
}

const twoCaches = `caches:
  two:
    tiers:
      - {name: near, backend: otter, capacity: 60}
      - {name: far, backend: ristretto, capacity: 1MiB}
    lifetime: {ttl: 500ms, jitter: 10%, stale_while_revalidate: 500ms}
    refresh: {policy: swr}
    limits: {load_timeout: 1s}
  one:
    tiers: [{name: mem, backend: memory, eviction: arc, capacity: 60}]
    lifetime: {ttl: 500ms}
    refresh: {policy: xfetch}
    limits: {load_timeout: 1s}
`

func TestCompareDocuments(t *testing.T) {
	first, second := file(t, "good.yaml", goodDocument), file(t, "two.yaml", twoCaches)
	code, stdout, stderr := compareFiles(t.Context(), []string{"--json", "-"}, first, second)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, stderr %q", code, stderr)
	}
	p := parse(t, stdout)
	if p.Environment["complete"] != true || p.Environment["cache"] != nil || len(p.Environment["config"].([]any)) != 2 {
		t.Errorf("environment: got %v", p.Environment)
	}
	wants := []string{"products fixed l1:lru", "one xfetch mem:arc", "two swr near:w-tinylfu far:tinylfu"}
	if len(p.Rows) != len(wants) {
		t.Fatalf("got %d rows, want %d", len(p.Rows), len(wants))
	}
	for i, r := range p.Rows {
		if got := runs(r); got != wants[i] {
			t.Errorf("row %d: got %s, want %s", i, got, wants[i])
		}
		if got, want := r["file"], []string{first, second, second}[i]; got != want {
			t.Errorf("row %d: is of %v, want %v", i, got, want)
		}
		for _, name := range []string{"file", "cache", "tiers"} {
			delete(r, name)
		}
		if r["heap_bytes_per_entry"] != -1.0 {
			t.Errorf("row %d: heap is %v, want none", i, r["heap_bytes_per_entry"])
		}
		r["combination"] = strings.Join(keysOf(r["hits"].(map[string]any)), "+") // in checkRow's order
		r["heap_bytes_per_entry"] = 1000.0
		checkRow(t, r, 200)
	}
}

func TestTableOfDocuments(t *testing.T) {
	name := file(t, "two.yaml", strings.Replace(twoCaches, ", jitter: 10%", "", 1))
	code, stdout, stderr := compareFiles(t.Context(), nil, name)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{
		"\none    mem:arc", "\ntwo    near:w-tinylfu far:tinylfu", " xfetch ", " swr ", "2nd %",
		"caches    of " + name + "\n          one: mem memory (arc, 60 entries)", "warning: caches.two.lifetime.jitter",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	for _, not := range []string{"heap/entry", "l1 lru", "EMBEDDED"} {
		if strings.Contains(stdout, not) {
			t.Errorf("%q is in\n%s", not, stdout)
		}
	}
}

// Nothing but a word of the document changes, and something else runs.
func TestAWordOfTheDocumentChangesWhatRuns(t *testing.T) {
	document := strings.Replace(goodDocument, "ttl: 500ms", "ttl: 500ms, stale_while_revalidate: 500ms", 1) // swr needs it
	for _, test := range []struct{ eviction, policy string }{
		{"lru", "fixed"}, {"2q", "fixed"}, {"arc", "fixed"}, {"sieve", "fixed"}, {"tinylfu", "fixed"}, {"w-tinylfu", "fixed"},
		{"lru", "swr"}, {"lru", "xfetch"},
	} {
		text := strings.NewReplacer("eviction: lru", "eviction: "+test.eviction, "policy: fixed", "policy: "+test.policy).Replace(document)
		code, stdout, stderr := compareFiles(t.Context(), nil, file(t, "c.yaml", text))
		if row := fmt.Sprintf("\n%-9s %-*s  %s ", "products", len("l1:"+test.eviction), "l1:"+test.eviction, test.policy); code != exitOK || !strings.Contains(stdout, row) {
			t.Errorf("got exit code %d, want the row %q in\n%s%s", code, row, stdout, stderr)
		}
		_, stdout, stderr = compareFiles(t.Context(), []string{
			"--json", "-", "--set", "products.tiers.l1.eviction=" + test.eviction, "--set", "products.refresh.policy=" + test.policy,
		}, file(t, "c.yaml", document))
		if p := parse(t, stdout); len(p.Rows) != 1 || runs(p.Rows[0]) != "products "+test.policy+" l1:"+test.eviction {
			t.Errorf("--set: got %v, %s", p.Rows, stderr)
		}
	}
}

// Without --config the subcommand is the command.
func TestCompareWithoutDocuments(t *testing.T) {
	args := append([]string{"compare", "--combinations", "l1", "--policies", "fixed", "--json", "-"}, quick...)
	code, stdout, stderr := bench(t.Context(), args...)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, stderr %q", code, stderr)
	}
	p := parse(t, stdout)
	if len(p.Rows) != 1 {
		t.Fatalf("got %d rows", len(p.Rows))
	}
	checkRow(t, p.Rows[0], 200)
}

func TestFaultsOfDocumentsAreTold(t *testing.T) {
	code, stdout, stderr := compareFiles(t.Context(), nil,
		file(t, "bad.yaml", faultyDocument), file(t, "good.yaml", goodDocument), file(t, "empty.yaml", ""))
	if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 3 || !strings.Contains(stderr, "bad.yaml:5:21: ") || !strings.Contains(stderr, "empty.yaml:1:1: ") {
		t.Errorf("got exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, _, stderr = compareFiles(t.Context(), []string{"--set", "nobody.lifetime.ttl=5m"}, file(t, "good.yaml", goodDocument))
	if code != exitUsage {
		t.Errorf("got exit code %d", code)
	}
	wantOneLine(t, stderr, "--set nobody.lifetime.ttl", "there is no cache nobody")
}

// What only shows when the cache is built has its place too.
func TestFaultsOfBuildingAreTold(t *testing.T) {
	text := onServer("redis://:hunter2@127.0.0.1:1/0?nonsense=1", "json")
	code, stdout, stderr := compareFiles(t.Context(), nil, file(t, "c.yaml", text))
	if code != exitUsage || stdout != "" {
		t.Errorf("got exit code %d, stdout %q", code, stdout)
	}
	wantOneLine(t, stderr, "c.yaml:5:", "caches.shared.tiers.l3.url")
	wantNoSecret(t, stderr)
}

// onServer is a document of a cache whose l3 is a Redis.
func onServer(url, codec string) string {
	return fmt.Sprintf(`caches:
  shared:
    tiers:
      - {name: l1, backend: lru, capacity: 20, ttl: 1m}
      - {name: l3, backend: redis, url: %q, prefix: "production:", codec: %s}
    lifetime: {ttl: 1h}
`, url, codec)
}

func TestDocumentWithAServerThatIsDownIsExit2(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	memcached := `caches:
  shared:
    tiers: [{name: l3, backend: memcached, servers: ["127.0.0.1:1"], prefix: "p:"}]
    lifetime: {ttl: 1m}
`
	for _, text := range []string{
		onServer("redis://:hunter2@127.0.0.1:1", "json"),
		onServer("redis://:hunter2@"+silent.Addr().String(), "json"),
		memcached,
	} {
		began := time.Now()
		code, stdout, stderr := compareFiles(t.Context(), nil, file(t, "good.yaml", goodDocument), file(t, "c.yaml", text))
		if took := time.Since(began); code != exitUsage || stdout != "" || took > 6*time.Second {
			t.Errorf("got exit code %d, stdout %q after %v", code, stdout, took)
		}
		wantOneLine(t, stderr, "c.yaml: shared does not answer: tier l3: ")
		wantNoSecret(t, stderr)
	}
}

// Of several servers that share the keys one is down.
func TestDocumentWithOneServerOfSeveralDown(t *testing.T) {
	text := fmt.Sprintf(`caches:
  shared:
    tiers: [{name: l3, backend: memcached, servers: [%q, "127.0.0.1:1"], prefix: "p:"}]
    lifetime: {ttl: 1m}
`, servers.Memcached(t).Addr())
	code, _, stderr := compareFiles(t.Context(), nil, file(t, "c.yaml", text))
	if code != exitUsage {
		t.Errorf("got exit code %d", code)
	}
	wantOneLine(t, stderr, "shared does not answer: tier l3: ", "127.0.0.1:1")
}

// Two documents name one database and one prefix, under which production keeps
// entries by the names that the bench uses for its keys.
func TestDocumentsOnOneServer(t *testing.T) {
	redis := servers.Redis(t)
	client := goredis.NewClient(&goredis.Options{Addr: redis.Addr()})
	defer client.Close()
	own := make(map[string]string)
	for i := range 400 {
		own[fmt.Sprintf("production:key-%07d", i)] = fmt.Sprint("precious ", i)
	}
	own["production:probe-0"], own["terrace-bench:another's"] = "x", "y"
	for k, v := range own {
		if err := client.Set(t.Context(), k, v, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}

	url := "redis://" + redis.Addr()
	var files []string
	codecs := []string{"raw", "raw", "json", "msgpack", "gob"}
	for i, codec := range codecs {
		files = append(files, file(t, fmt.Sprintf("%d.yaml", i), onServer(url, codec)))
	}
	code, stdout, stderr := compareFiles(t.Context(), []string{"--json", "-", "--warmup-seconds", "0"}, files...)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, stderr %q", code, stderr)
	}
	p := parse(t, stdout)
	if len(p.Rows) != len(codecs) {
		t.Fatalf("got %d rows", len(p.Rows))
	}
	for i, r := range p.Rows {
		// Each row loads each key that it reads once: none finds another's entries.
		if got, want := r["origin_calls"], p.Rows[0]["origin_calls"]; got != want || got.(float64) < 50 {
			t.Errorf("row %d: %v loads, want %v as the first row, and many", i, got, want)
		}
		if l3 := r["hits"].(map[string]any)["l3"].(float64); l3 == 0 {
			t.Errorf("row %d: l3 answered nothing", i)
		}
	}

	left := func() []string {
		keys, err := client.Keys(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(keys, func(k string) bool { _, is := own[k]; return is })
	}
	for deadline := time.Now().Add(5 * time.Second); len(left()) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("keys of the bench are left: %v", left())
		}
	}
	for k, want := range own {
		if got, err := client.Get(t.Context(), k).Result(); err != nil || got != want {
			t.Fatalf("%s is now %q, %v", k, got, err)
		}
	}
}

func TestServerOfADocumentDiesInTheMiddle(t *testing.T) {
	redis := servers.Redis(t)
	files := []string{file(t, "good.yaml", goodDocument), file(t, "c.yaml", onServer("redis://"+redis.Addr(), "raw"))}
	args := []string{"--seconds", "3", "--set", "shared.lifetime.ttl=100ms", "--set", "shared.tiers.l1.ttl=50ms"}
	code, stdout, stderr := benchOnTerminal(t.Context(), onStep("[2/2]", time.Second, redis.Kill), comparing(args, files...)...)
	if code != exitFailure {
		t.Errorf("got exit code %d, want %d", code, exitFailure)
	}
	wantOneLine(t, stderr, "c.yaml: shared", "does not answer", "tier l3")
	if !strings.Contains(stdout, "good.yaml: products ") {
		t.Errorf("the row that was done is not printed:\n%s", stdout)
	}
}

// The default cache lets a load take longer than the origin ever does; a document's may
// not.
func TestDocumentWhoseLoadsMayNotTakeLong(t *testing.T) {
	code, _, stderr := compareFiles(t.Context(), []string{"--set", "products.limits.load_timeout=5ms", "--origin-latency", "100ms"}, file(t, "good.yaml", goodDocument))
	if code != exitFailure {
		t.Errorf("got exit code %d, want %d", code, exitFailure)
	}
	wantOneLine(t, stderr, "products: ", "--origin-latency", "limits.load_timeout")
}

func TestInterruptedComparisonOfDocuments(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	name := file(t, "two.yaml", twoCaches)
	code, stdout, stderr := benchOnTerminal(ctx, onStep("[2/2]", time.Second, cancel), comparing([]string{"--seconds", "3", "--json", "-"}, name)...)
	if code != exitInterrupted {
		t.Errorf("got exit code %d, want %d", code, exitInterrupted)
	}
	wantOneLine(t, stderr, "interrupted in two")
	if p := parse(t, stdout); len(p.Rows) != 1 || p.Environment["complete"] != false {
		t.Errorf("got %d rows, complete: %v", len(p.Rows), p.Environment["complete"])
	}

	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr = compareFiles(ctx, nil, name)
	if code != exitInterrupted || stdout != "" {
		t.Errorf("interrupted before it begins: got exit code %d, stdout %q", code, stdout)
	}
	wantOneLine(t, stderr, "interrupted")
}
