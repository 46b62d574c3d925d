package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/terracecache/terrace/policy"
)

// scalar is a field that is one value. Its zero is that of a field that is not there.
type scalar interface {
	// shape returns how it may be written.
	shape(f *field, r *Registry) shape
	// set takes a node of that shape.
	set(n *node, f *field)
	// show returns the value as it can be shown to anybody, and compared with another.
	show() string
}

// duration is a time with its unit.
type duration struct {
	time.Duration
	given bool
}

// The units come in order, each once, and with so few digits that no sum overflows.
const durationForm = `([0-9]{1,4}(\.[0-9]{1,3})?d)?([0-9]{1,6}(\.[0-9]{1,6})?h)?([0-9]{1,7}(\.[0-9]{1,6})?m)?` +
	`([0-9]{1,9}(\.[0-9]{1,9})?s)?([0-9]{1,9}(\.[0-9]{1,6})?ms)?([0-9]{1,9}(\.[0-9]{1,3})?(us|µs))?([0-9]{1,9}ns)?`

var (
	durationPattern   = pattern(`^` + durationForm + `$`)
	durationOrForever = pattern(`^` + durationForm + `$|^forever$`)
	noTime            = pattern(`^$`)
	zeroTime          = pattern(`^([0.]+(ns|us|µs|ms|s|m|h|d))*$`)
)

func (d *duration) shape(f *field, _ *Registry) shape {
	s := shape{text: durationPattern, textNot: zeroTime, want: "a time with its unit (d, h, m, s, ms, us, ns), such as " + f.example("30s")}
	if f.forever {
		s.text = durationOrForever
		s.want += `, or "forever"`
	}
	if f.zero {
		s.textNot = noTime
	}
	return s
}

func (d *duration) set(n *node, _ *field) {
	d.Duration, d.given = parseDuration(n.text), true
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

// parseDuration reads what durationPattern takes: Go's own form, with days before it.
func parseDuration(text string) time.Duration {
	if text == "forever" {
		return policy.Forever
	}
	days := time.Duration(0)
	if before, after, ok := strings.Cut(text, "d"); ok {
		n, _ := strconv.ParseFloat(before, 64)
		days, text = time.Duration(n*float64(24*time.Hour)), after
	}
	d, _ := time.ParseDuration(text) // what is empty is zero
	return days + d
}

// count is a whole number.
type count struct {
	n     int64
	given bool
}

const mostCount = 999_999_999_999

var countPattern = pattern(`^[1-9](_?[0-9]){0,11}$`)

func (c *count) shape(f *field, _ *Registry) shape {
	return shape{integer: &[2]int64{1, mostCount}, text: countPattern, want: "a whole number of at least 1, such as " + f.example("64")}
}

func (c *count) set(n *node, _ *field) { c.n, c.given = wholeNumber(n), true }

// wholeNumber returns the number of a node that is one.
func wholeNumber(n *node) int64 {
	if n.kind != textNode {
		i, _ := n.integer()
		return i.Int64()
	}
	v, _ := strconv.ParseInt(strings.ReplaceAll(n.text, "_", ""), 10, 64)
	return v
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

// With so few digits that no size overflows, and none is less than a byte.
const sizeForm = `[1-9][0-9]{0,14}B|` +
	`([1-9][0-9]{0,11}(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9])(kB|KB|KiB)|` +
	`([1-9][0-9]{0,8}(\.[0-9]{1,6})?|0\.[0-9]{0,5}[1-9])(MB|MiB)|` +
	`([1-9][0-9]{0,5}(\.[0-9]{1,9})?|0\.[0-9]{0,8}[1-9])(GB|GiB)|` +
	`([1-9][0-9]{0,3}(\.[0-9]{1,9})?|0\.[0-9]{0,8}[1-9])(TB|TiB)`

var sizePattern = pattern(`^(` + sizeForm + `)$`)

var sizeUnits = map[string]float64{
	"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

func (s *size) shape(f *field, _ *Registry) shape {
	return shape{text: sizePattern, want: "a size with its unit (B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB), such as " + f.example("1KiB")}
}

func (s *size) set(n *node, _ *field) { s.n, s.given = parseSize(n.text), true }

func parseSize(text string) int64 {
	number := strings.TrimRight(text, "BkKMGTi")
	f, _ := strconv.ParseFloat(number, 64)
	return int64(f * sizeUnits[text[len(number):]])
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

var capacityPattern = pattern(`^[1-9](_?[0-9]){0,11}$|^(` + sizeForm + `)$`)

func (c *capacity) shape(*field, *Registry) shape {
	return shape{
		integer: &[2]int64{1, mostCount}, text: capacityPattern,
		want: "a number of entries, such as 10_000, or a size with its unit (B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB), such as 256MiB",
	}
}

func (c *capacity) set(n *node, _ *field) {
	if n.kind == textNode && compiled[sizePattern].MatchString(n.text) {
		c.bytes = parseSize(n.text)
	} else {
		c.entries = wholeNumber(n)
	}
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

var sharePattern = pattern(`^[0-9]{1,2}(\.[0-9]{1,6})?%$|^0(\.[0-9]{1,9})?$`)

func (s *share) shape(f *field, _ *Registry) shape {
	return shape{
		number: &[2]float64{0, 1}, open: [2]bool{false, true}, text: sharePattern,
		want: "a share such as " + f.example("10%") + ", or 0.1 for the same; less than 100%, with which entries would die at birth",
	}
}

func (s *share) set(n *node, _ *field) {
	var v float64
	if percent, ok := strings.CutSuffix(n.text, "%"); ok {
		v, _ = strconv.ParseFloat(percent, 64)
		v /= 100
	} else if n.kind == textNode {
		v, _ = strconv.ParseFloat(n.text, 64)
	} else {
		v, _ = n.float()
	}
	s.f, s.given = v, true
}

func (s *share) show() string {
	if !s.given {
		return ""
	}
	return strconv.FormatFloat(100*s.f, 'g', 6, 64) + "%"
}

// factor is a number above zero.
type factor struct {
	f     float64
	given bool
}

var factorPattern = pattern(`^(0\.[0-9]{0,8}[1-9]|[1-9][0-9]{0,2}(\.[0-9]{1,9})?)$`)

func (x *factor) shape(f *field, _ *Registry) shape {
	return shape{
		number: &[2]float64{0, 1000}, open: [2]bool{true, false}, text: factorPattern,
		want: "a number above 0 and up to 1000, such as " + f.example("1"),
	}
}

func (x *factor) set(n *node, _ *field) {
	if n.kind == textNode {
		x.f, _ = strconv.ParseFloat(n.text, 64)
	} else {
		x.f, _ = n.float()
	}
	x.given = true
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

func (t *text) set(n *node, _ *field) { *t = text(n.text) }

func (t *text) show() string { return string(*t) }

// name is what something is called.
type name string

var namePattern = pattern(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

func (*name) shape(f *field, _ *Registry) shape {
	return shape{text: namePattern, want: "a name of letters, digits, _ . and -, which begins with a letter, such as " + f.example("l1")}
}

func (t *name) set(n *node, _ *field) { *t = name(n.text) }

func (t *name) show() string { return string(*t) }

// choice is one of some names, which its field or the registry knows.
type choice string

func (*choice) shape(f *field, r *Registry) shape {
	names := f.choices(r)
	return shape{enum: names, want: oneOf(names)}
}

func (c *choice) set(n *node, _ *field) { *c = choice(n.text) }

func (c *choice) show() string { return string(*c) }

// secret is text that is shown to nobody. It is kept in a function so that nothing
// prints it by accident.
type secret struct{ reveal func() string }

func (*secret) shape(f *field, _ *Registry) shape {
	return shape{text: textPattern, want: "text, such as " + f.example("${REDIS_URL}")}
}

func (s *secret) set(n *node, _ *field) {
	text := n.text
	s.reveal = func() string { return text }
}

func (s *secret) given() bool { return s.reveal != nil }

func (s *secret) show() string {
	if s.reveal == nil {
		return ""
	}
	return "(hidden)"
}
