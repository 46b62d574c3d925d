package main

import (
	"strings"
	"testing"

	"github.com/terracecache/terrace/bench/internal/history"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// What processes whose connections fail at random see is what is promised.
func TestFleetHistory(t *testing.T) {
	for name, server := range map[string]func() []string{
		"redis":         func() []string { return []string{"--redis", "redis://" + servers.Redis(t).Addr(), "--seed", "1"} },
		"redis, seed 2": func() []string { return []string{"--redis", "redis://" + servers.Redis(t).Addr(), "--seed", "2"} },
		"memcached":     func() []string { return []string{"--memcached", servers.Memcached(t).Addr(), "--seed", "3"} },
	} {
		args := append(server(), "--scenario", "history", "--operations", "2000",
			"--converge", "300ms") // under -race, beside other tests
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			for _, row := range fleetOf(t.Context(), t, args...) {
				if row.Violations == nil || *row.Violations != 0 || *row.Operations < 2000 {
					t.Errorf("%s: %+v", row.label(), row)
				}
				if row.OriginCalls == 0 || row.StaleReads == 0 && !row.Bus || row.LongestWait == 0 {
					t.Errorf("%s: nothing has happened: %+v", row.label(), row)
				}
			}
		})
	}
}

// A violation is told with the operations that show it, and counted.
func TestFleetHistoryViolated(t *testing.T) {
	const ms = 1e6
	h := &history.History{Processes: make([]history.Process, 2), Ops: []history.Op{
		{Key: 3, Kind: history.Set, Version: 1, Begin: 1 * ms, End: 2 * ms},
		{Key: 3, Kind: history.Get, Version: 0, Begin: 3 * ms, End: 4 * ms},
		{Key: 3, Kind: history.Get, Version: 0, Begin: 300 * ms, End: 301 * ms, Process: 1},
	}}
	for range 2 * mostViolations {
		h.Ops = append(h.Ops, h.Ops[2])
	}
	rep := newFleetReport(&fleetSettings{}, &fleetServer{remote: new(remote)})
	f := &fleet{settings: &fleetSettings{}, row: fleetRow{Scenario: "history", Bus: true}, note: rep.note}
	f.tell(h, f.promise(), nil, "")
	rep.Rows = append(rep.Rows, f.row)
	if got, want := rep.violations(), 2+2*mostViolations; got != want {
		t.Errorf("got %d violations, want %d", got, want)
	}
	notes := strings.Join(rep.Environment.Notes, "\n")
	for _, want := range []string{"VIOLATION: own write: process 1 read version 0 of key 3", "VIOLATION: bus works: process 2", "violations more"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is missing in\n%s", want, notes)
		}
	}
	if got := strings.Count(notes, "VIOLATION"); got != mostViolations {
		t.Errorf("%d are told, want %d", got, mostViolations)
	}
}
