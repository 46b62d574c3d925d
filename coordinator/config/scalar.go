package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/terracecache/terrace/policy"
)

// scalar is a field that is one value. Its zero is that of a field that is not there.
type scalar interface {
	// shape returns how it may be written.
	shape(f *field, r *Registry) shape
	// set takes a node of that shape, and returns what is wrong with it all the same.
	set(n *node, f *field) (problem string)
	// show returns the value as it can be shown to anybody, and compared with another.
	show() string
}

// duration is a time with its unit.
type duration struct {
	time.Duration
	given bool
}

var durationPattern = pattern(`^([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h|d))+$|^forever$`)

func (d *duration) shape(f *field, _ *Registry) shape {
	want := "a time with its unit (ns, us, ms, s, m, h, d), such as " + f.example("30s")
	if f.forever {
		want += `, or "forever"`
	}
	return shape{text: durationPattern, want: want}
}

func (d *duration) set(n *node, f *field) string {
	v, err := parseDuration(n.text)
	switch {
	case err != nil:
		return err.Error()
	case v == policy.Forever && !f.forever:
		return "cannot be for ever here: want a time, such as " + f.example("30s")
	case v == 0 && !f.zero:
		return "zero makes no sense here: want more, or leave the field out"
	}
	d.Duration, d.given = v, true
	return ""
}

func (d *duration) show() string {
	if !d.given {
		return ""
	}
	return showDuration(d.Duration)
}

func showDuration(d time.Duration) string {
	if d == policy.Forever {
		return "forever"
	}
	s := d.String() // 1m0s, 1h0m0s: without the parts that say nothing
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parseDuration reads what durationPattern takes: Go's own form, with days.
func parseDuration(text string) (time.Duration, error) {
	if text == "forever" {
		return policy.Forever, nil
	}
	days := time.Duration(0)
	rest := text
	if before, after, ok := strings.Cut(text, "d"); ok {
		// Days lead, as in 1d12h; elsewhere Go's own parser refuses them.
		n, err := strconv.ParseFloat(before, 64)
		if err != nil || n*24 > float64(math.MaxInt64/int64(time.Hour)) {
			return 0, fmt.Errorf("not a time, or longer than 292 years: days come first, as in 1d12h")
		}
		days, rest = time.Duration(n*float64(24*time.Hour)), after
	}
	if rest == "" {
		return days, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || days+d < 0 {
		return 0, fmt.Errorf("not a time, or longer than 292 years: days come first, as in 1d12h")
	}
	return days + d, nil
}

// count is a whole number.
type count struct {
	n     int64
	given bool
}

const mostCount = 1_000_000_000_000

var countPattern = pattern(`^[0-9][0-9_]{0,14}$`)

func (c *count) shape(f *field, _ *Registry) shape {
	return shape{integer: &[2]int64{1, mostCount}, text: countPattern, want: "a whole number of at least 1, such as " + f.example("64")}
}

func (c *count) set(n *node, _ *field) string {
	v, problem := wholeNumber(n)
	if problem != "" {
		return problem
	}
	c.n, c.given = v, true
	return ""
}

// wholeNumber returns the number of a node, of at least 1.
func wholeNumber(n *node) (int64, string) {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.text, "_", ""), 10, 64)
	if n.kind != textNode {
		i, _ := n.integer()
		v, err = i.Int64(), nil
	}
	switch {
	case err != nil || v > mostCount:
		return 0, fmt.Sprintf("too large: want at most %d", int64(mostCount))
	case v < 1:
		return 0, "zero makes no sense here: want at least 1"
	}
	return v, ""
}

func (c *count) show() string {
	if !c.given {
		return ""
	}
	return showCount(c.n)
}

// showCount writes a number so that it can be read: 10_000.
func showCount(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "_" + s[i:]
	}
	return s
}

// size is a number of bytes.
type size struct {
	n     int64
	given bool
}

var sizePattern = pattern(`^[0-9]{1,12}(\.[0-9]{1,6})?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$`)

var sizeUnits = map[string]float64{
	"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

func (s *size) shape(f *field, _ *Registry) shape {
	return shape{text: sizePattern, want: "a size with its unit (B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB), such as " + f.example("1KiB")}
}

func (s *size) set(n *node, _ *field) string {
	v, problem := parseSize(n.text)
	if problem != "" {
		return problem
	}
	s.n, s.given = v, true
	return ""
}

func parseSize(text string) (int64, string) {
	number := strings.TrimRight(text, "BkKMGTi")
	f, err := strconv.ParseFloat(number, 64)
	bytes := f * sizeUnits[text[len(number):]]
	switch {
	case err != nil || bytes > 1<<60:
		return 0, "larger than any memory"
	case bytes < 1:
		return 0, "less than a byte: want more"
	}
	return int64(bytes), ""
}

func (s *size) show() string {
	if !s.given {
		return ""
	}
	return showSize(s.n)
}

func showSize(n int64) string {
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if unit := int64(sizeUnits[u]); n >= unit && n%unit == 0 {
			return fmt.Sprintf("%d%s", n/unit, u)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// capacity is a number of entries, or of bytes.
type capacity struct {
	entries, bytes int64 // one of them, or none
}

var capacityPattern = pattern(`^[0-9][0-9_]{0,14}$|` + sizePattern)

func (c *capacity) shape(f *field, _ *Registry) shape {
	return shape{
		integer: &[2]int64{1, mostCount}, text: capacityPattern,
		want: "a number of entries, such as 10_000, or a size with its unit (B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB), such as 256MiB",
	}
}

func (c *capacity) set(n *node, _ *field) (problem string) {
	if n.kind == textNode && compiled[sizePattern].MatchString(n.text) {
		c.bytes, problem = parseSize(n.text)
	} else {
		c.entries, problem = wholeNumber(n)
	}
	return problem
}

func (c *capacity) show() string {
	switch {
	case c.bytes > 0:
		return showSize(c.bytes)
	case c.entries > 0:
		return showCount(c.entries)
	default:
		return ""
	}
}

// amount returns the capacity in its own unit.
func (c *capacity) amount() int64 { return max(c.entries, c.bytes) }

func (c *capacity) given() bool { return c.amount() > 0 }

// share is a part of one, as a percentage or a number.
type share struct {
	f     float64
	given bool
}

var sharePattern = pattern(`^[0-9]{1,3}(\.[0-9]{1,6})?%$|^0(\.[0-9]{1,9})?$`)

func (s *share) shape(f *field, _ *Registry) shape {
	return shape{number: &[2]float64{0, 1}, text: sharePattern, want: "a share such as " + f.example("10%") + ", or 0.1 for the same; less than 100%"}
}

func (s *share) set(n *node, _ *field) string {
	var v float64
	if percent, ok := strings.CutSuffix(n.text, "%"); ok && n.kind == textNode {
		v, _ = strconv.ParseFloat(percent, 64)
		v /= 100
	} else if n.kind == textNode {
		v, _ = strconv.ParseFloat(n.text, 64)
	} else {
		v, _ = n.float()
	}
	if v >= 1 {
		return "a jitter of all of it or more would let entries die at birth: want less than 100%"
	}
	s.f, s.given = v, true
	return ""
}

func (s *share) show() string {
	if !s.given {
		return ""
	}
	return strconv.FormatFloat(100*s.f, 'g', 6, 64) + "%"
}

// factor is a number of at least zero.
type factor struct {
	f     float64
	given bool
}

var factorPattern = pattern(`^[0-9]{1,3}(\.[0-9]{1,9})?$`)

func (x *factor) shape(f *field, _ *Registry) shape {
	return shape{number: &[2]float64{0, 1000}, text: factorPattern, want: "a number above 0 and up to 1000, such as " + f.example("1")}
}

func (x *factor) set(n *node, _ *field) string {
	v, err := strconv.ParseFloat(n.text, 64)
	if n.kind != textNode {
		var ok bool
		if v, ok = n.float(); ok {
			err = nil
		}
	}
	if err != nil || v <= 0 {
		return "want a number above 0"
	}
	x.f, x.given = v, true
	return ""
}

func (x *factor) show() string {
	if !x.given {
		return ""
	}
	return strconv.FormatFloat(x.f, 'g', 6, 64)
}

// text is any text but none.
type text string

var textPattern = pattern(`^[^\x00-\x1f\x7f]+$`)

func (t *text) shape(f *field, _ *Registry) shape {
	return shape{text: textPattern, want: "text, such as " + f.example("products:")}
}

func (t *text) set(n *node, _ *field) string {
	*t = text(n.text)
	return ""
}

func (t *text) show() string { return string(*t) }

// name is what something is called.
type name string

var namePattern = pattern(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

func (*name) shape(f *field, _ *Registry) shape {
	return shape{text: namePattern, want: "a name of letters, digits, _ . and -, which begins with a letter, such as " + f.example("l1")}
}

func (t *name) set(n *node, _ *field) string {
	*t = name(n.text)
	return ""
}

func (t *name) show() string { return string(*t) }

// choice is one of some names, which its field or the registry knows.
type choice string

func (*choice) shape(f *field, r *Registry) shape {
	names := f.choices(r)
	return shape{enum: names, want: oneOf(names)}
}

func (c *choice) set(n *node, _ *field) string {
	*c = choice(n.text)
	return ""
}

func (c *choice) show() string { return string(*c) }

// secret is text that is shown to nobody. It is kept in a function so that nothing
// prints it by accident.
type secret struct{ reveal func() string }

func (*secret) shape(f *field, _ *Registry) shape {
	return shape{text: textPattern, want: "text, such as " + f.example("${REDIS_URL}")}
}

func (s *secret) set(n *node, _ *field) string {
	text := n.text
	s.reveal = func() string { return text }
	return ""
}

func (s *secret) given() bool { return s.reveal != nil }

func (s *secret) show() string {
	if s.reveal == nil {
		return ""
	}
	return "(hidden)"
}
