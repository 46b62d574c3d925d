// Package page makes one self-contained HTML page of what a command found: figures to
// decide from, each with its table, and what they depend on.
//
// The page asks the network for nothing, and its policy (Content-Security-Policy) has the
// browser refuse it. Charts are drawn by Apache ECharts, which is in the page; without
// scripts the tables are there. All that comes from outside, such as names of files, is
// shown as text.
package page

// Report is all that a page shows.
type Report struct {
	Title string
	// Lead says in a sentence or two what was compared, on what.
	Lead string
	// Command is the command line that made it, without secrets.
	Command string
	// Facts are what the figures depend on: the machine, the workload, the settings.
	Facts []Fact
	// Notes are what readers must know beside the figures.
	Notes []string
	// Results is the table of all rows.
	Results Table
	// Sections are shown in their order.
	Sections []Section
	// Configs are the configuration of each thing that was compared.
	Configs []Config
}

// Fact is a setting, or what else a figure depends on.
type Fact struct{ Name, Value string }

// Config is the configuration of one of what was compared.
type Config struct{ Name, Text string }

// Section is figures that belong together.
type Section struct {
	// Heading may be empty if there is one section.
	Heading string
	Text    string
	Figures []Figure
	// Tables have no chart.
	Tables []Table
	// Configs are the configuration that the section is about.
	Configs []Config
}

// Table is text in rows and columns.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]string
}

// Column is one of a table's.
type Column struct {
	Name string
	// Text is set to the left, anything else to the right.
	Text bool
}
