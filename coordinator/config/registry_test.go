package config_test

import (
	"strings"
	"testing"

	"github.com/terracecache/terrace/coordinator/config"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

type oddPolicy struct{ policy.Fixed }

func (*oddPolicy) Validate(policy.Lifetime) error { panic("hunter2secret") }

// What others register may be wrong in every way: that is a fault, with its place, and
// shows nothing of what it panicked with.
func TestRegisteredCodeMayFail(t *testing.T) {
	r := config.NewRegistry()
	for name, f := range map[string]config.PolicyFunc{
		"nothing":     func(config.Params) (policy.Strategy, error) { return nil, nil },
		"typed-nil":   func(config.Params) (policy.Strategy, error) { return (*oddPolicy)(nil), nil },
		"panics":      func(config.Params) (policy.Strategy, error) { panic("hunter2secret") },
		"bad-checker": func(config.Params) (policy.Strategy, error) { return new(oddPolicy), nil },
	} {
		if err := r.RegisterPolicy(name, f); err != nil {
			t.Fatal(err)
		}
		_, err := config.Parse("caches.yaml", []byte(small(goodTier, goodLife, "    refresh: {policy: "+name+"}\n")), config.Options{Registry: r})
		if err == nil || !strings.Contains(err.Error(), "caches.yaml:6:23: caches.c.refresh.policy") || strings.Contains(err.Error(), "hunter2secret") {
			t.Errorf("%s: got %v, want a fault at the policy", name, err)
		}
	}
	for name, f := range map[string]config.BytesFunc{
		"no-bytes":     func(config.Params) (tier.Bytes, error) { return nil, nil },
		"panics-bytes": func(config.Params) (tier.Bytes, error) { panic("hunter2secret") },
	} {
		if err := r.RegisterBytes(name, f); err != nil {
			t.Fatal(err)
		}
		doc, err := config.Parse("caches.yaml", []byte(small("backend: "+name, goodLife, "")), config.Options{Registry: r})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Build(doc, "c", config.Code[string, int]{}); err == nil || !strings.Contains(err.Error(), "caches.c.tiers.l1.backend") || strings.Contains(err.Error(), "hunter2secret") {
			t.Errorf("%s: got %v, want a fault at the backend", name, err)
		}
	}
	if err := r.RegisterPolicy("nothing", func(config.Params) (policy.Strategy, error) { return policy.Fixed{}, nil }); err == nil {
		t.Error("a name was taken twice")
	}
	if err := r.RegisterBytes("redis", func(config.Params) (tier.Bytes, error) { return nil, nil }); err == nil {
		t.Error("a name of Terrace's own was taken")
	}
	if err := r.RegisterPolicy("Not A Name", func(config.Params) (policy.Strategy, error) { return policy.Fixed{}, nil }); err == nil {
		t.Error("a name that a document cannot write was taken")
	}
	if err := r.RegisterPolicy("nil", nil); err == nil {
		t.Error("nil was taken")
	}
}

// Options are read strictly, with numbers from variables too.
func TestOptions(t *testing.T) {
	var got struct {
		Max  int    `yaml:"max"`
		Name string `yaml:"name"`
	}
	r := config.NewRegistry()
	if err := r.RegisterPolicy("mine", func(p config.Params) (policy.Strategy, error) { return policy.Fixed{}, p.Decode(&got) }); err != nil {
		t.Fatal(err)
	}
	read := func(options string) error {
		_, err := config.Parse("caches.yaml", []byte(small(goodTier, goodLife, "    refresh: {policy: mine, options: "+options+"}\n")), config.Options{Registry: r, Env: env})
		return err
	}
	if err := read(`{max: "${ROOM}", name: "5"}`); err != nil || got.Max != 500 || got.Name != "5" {
		t.Errorf("got %+v, %v, want 500 of the variable and the text 5", got, err)
	}
	for options, want := range map[string]string{
		"{mux: 1}":              "field mux not found",
		"{max: hunter2}":        "a value that is no int",
		"[1]":                   "want a mapping",
		`{name: [hunter2, x]}`:  "a value",
		`{max: {a: hunter2}}`:   "a value",
		`{max: "redis://u:p@"}`: "a value that is no int",
	} {
		if err := read(options); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "u:p@") {
			t.Errorf("%s: got %v, want %q", options, err, want)
		}
	}
}
