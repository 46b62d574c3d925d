package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
)

// fleetReport is all that the runs of a fleet found.
type fleetReport struct {
	Environment fleetEnvironment `json:"environment"`
	Rows        []fleetRow       `json:"rows"`
}

// fleetEnvironment is what the rows depend on beside their own fields. Times are in
// seconds.
type fleetEnvironment struct {
	Go            string   `json:"go"`
	System        string   `json:"system"`
	CPUs          int      `json:"cpus"`
	Began         string   `json:"began"`  // RFC 3339
	Server        string   `json:"server"` // without secrets
	Complete      bool     `json:"complete"`
	Notes         []string `json:"notes"`
	OriginLatency float64  `json:"origin_latency_seconds"`
	LeaseLife     float64  `json:"lease_life_seconds"`
	L1TTL         float64  `json:"l1_ttl_seconds"`
	Seed          uint64   `json:"seed"`
}

// fleetRow is what one fleet went through.
type fleetRow struct {
	Scenario    string  `json:"scenario"`
	Backend     string  `json:"backend"`
	Lease       bool    `json:"lease"`
	Bus         bool    `json:"bus"`
	Processes   int     `json:"processes"`
	Callers     int     `json:"callers"`
	Keys        int     `json:"keys"`
	OriginCalls int     `json:"origin_calls"`
	Failed      int     `json:"failed"`
	StaleReads  int     `json:"stale_reads"`
	Converge    float64 `json:"converge_seconds"`
	LongestWait float64 `json:"longest_wait_seconds"`

	// Of a history only.
	Operations *int `json:"operations,omitempty"`
	Violations *int `json:"violations,omitempty"`
}

func (r *fleetRow) label() string {
	return fmt.Sprintf("%s, lease %s, bus %s", r.Scenario, onOff(r.Lease), onOff(r.Bus))
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func newFleetReport(s *fleetSettings, server *fleetServer) *fleetReport {
	return &fleetReport{
		Environment: fleetEnvironment{
			Go:            runtime.Version(),
			System:        runtime.GOOS + "/" + runtime.GOARCH,
			CPUs:          runtime.GOMAXPROCS(0),
			Began:         time.Now().Format(time.RFC3339),
			Server:        server.label,
			Notes:         []string{},
			OriginLatency: s.OriginLatency.Seconds(),
			LeaseLife:     s.LeaseLife.Seconds(),
			L1TTL:         s.L1TTL.Seconds(),
			Seed:          s.Seed,
		},
		Rows: []fleetRow{},
	}
}

func (r *fleetReport) note(format string, args ...any) {
	r.Environment.Notes = append(r.Environment.Notes, fmt.Sprintf(format, args...))
}

// fleetColumns are those of the table.
var fleetColumns = []columnOf[fleetRow]{
	{"scenario", -11, func(r *fleetRow) string { return r.Scenario }},
	{"lease", -5, func(r *fleetRow) string { return onOff(r.Lease) }},
	{"bus", -5, func(r *fleetRow) string { return onOff(r.Bus) }},
	{"origin calls", 12, func(r *fleetRow) string { return fmt.Sprint(r.OriginCalls) }},
	{"per key", 8, func(r *fleetRow) string { return fmt.Sprintf("%.2f", ratio(r.OriginCalls, r.Keys)) }},
	{"failed", 8, func(r *fleetRow) string { return fmt.Sprint(r.Failed) }},
	{"stale reads", 13, func(r *fleetRow) string { return r.ifWritten(fmt.Sprint(r.StaleReads)) }},
	{"converged in", 14, func(r *fleetRow) string { return r.ifWritten(short(r.Converge)) }},
	{"longest wait", 14, func(r *fleetRow) string { return short(r.LongestWait) }},
}

// ifWritten leaves out what only writes bring about.
func (r *fleetRow) ifWritten(cell string) string {
	if r.writes() {
		return cell
	}
	return "-"
}

// writes reports whether the scenario has any.
func (r *fleetRow) writes() bool {
	switch r.Scenario {
	case "invalidate", "cut", "history":
		return true
	}
	return false
}

// violations counts what the histories of all rows show.
func (r *fleetReport) violations() (n int) {
	for _, row := range r.Rows {
		if row.Violations != nil {
			n += *row.Violations
		}
	}
	return n
}

// writeTable writes the report for people.
func (r *fleetReport) writeTable(w io.Writer, s *fleetSettings) error {
	var b strings.Builder
	e := &r.Environment
	fmt.Fprintf(&b, "%s, %s, %d CPUs; seed %d\n", e.Go, e.System, e.CPUs, e.Seed)
	fmt.Fprintf(&b, "fleet     %d processes of %d callers, %d keys; the origin takes %v\n", s.Processes, s.Callers, s.Keys, s.OriginLatency)
	fmt.Fprintf(&b, "tiers     l1 in each process, for %v; l2 %s; a lease lives for %v\n\n", s.L1TTL, e.Server, s.LeaseLife)
	line := func(cell func(i int) string) {
		var cells []string
		for i, c := range fleetColumns {
			cells = append(cells, fmt.Sprintf("%*s", c.width, cell(i)))
		}
		fmt.Fprintln(&b, strings.TrimRight(strings.Join(cells, " "), " "))
	}
	line(func(i int) string { return fleetColumns[i].name })
	for i := range r.Rows {
		if i > 0 && r.Rows[i].Scenario != r.Rows[i-1].Scenario {
			b.WriteString("\n")
		}
		line(func(c int) string { return fleetColumns[c].cell(&r.Rows[i]) })
	}
	b.WriteString("\n")
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "! %s\n", note)
	}
	if len(e.Notes) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(fleetKeyText)
	_, err := io.WriteString(w, b.String())
	return err
}

const fleetKeyText = `How to read it
  lease         on: one process at a time loads a key, and the others wait for it
  bus           on: processes tell each other what they write, over Redis; with memcached there is none
  origin calls  loads that the fleet began, those of a killed process included; per key: 1.00 is the best that cold can
                be, 2.00 that kill can. In invalidate and cut from when all processes hold all keys
  failed        reads answered with an error, and writes that did nothing
  stale reads   reads that began after a write had returned in any process, and got what was before it
  converged in  when the last of them began: after its write's return, or in cut after the connection was restored
                in history from when the server had the write, and with the bus as long as that works at both ends
  longest wait  of any read; in kill of the processes that live on
`
