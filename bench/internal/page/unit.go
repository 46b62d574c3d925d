package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unit is how a number is written.
type Unit string

// The units.
const (
	// Number is written as it is, up to four digits behind the point.
	Number Unit = "number"
	// Count is written with its thousands apart.
	Count Unit = "count"
	// Share is one of 1, written in percent.
	Share Unit = "share"
	// Seconds are written in the unit of time that fits.
	Seconds Unit = "seconds"
	// Bytes are written in the binary unit that fits.
	Bytes Unit = "bytes"
	// Percentile is 100/(100-p) for the percentile p, so that a logarithmic axis stretches
	// the tail: 2 is p50, 10 is p90, 1000 is p99.9.
	Percentile Unit = "percentile"
)

// none is written for a value that there is not.
const none = "–"

// Text writes a value; one that is no number as a dash.
func (u Unit) Text(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	switch u {
	case Count:
		return thousands(v)
	case Share:
		return strconv.FormatFloat(100*v, 'f', 2, 64) + " %"
	case Percentile:
		return "p" + Number.Text(100*(1-1/v))
	case Seconds:
		return scaled(v, []scale{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}})
	case Bytes:
		return scaled(v, []scale{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}})
	}
	return strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64)
}

type scale struct {
	of   float64
	name string
}

// scaled writes a value with three significant digits, in the greatest unit of which it
// is at least one.
func scaled(v float64, units []scale) string {
	if v == 0 {
		return "0"
	}
	unit := units[len(units)-1]
	for _, u := range units {
		if math.Abs(v) >= u.of {
			unit = u
			break
		}
	}
	v /= unit.of
	digits := 2
	if math.Abs(v) >= 100 {
		digits = 0
	} else if math.Abs(v) >= 10 {
		digits = 1
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + unit.name
}

// thousands writes a count, with one digit behind the point if it is a mean.
func thousands(v float64) string {
	text := strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	whole, rest, _ := strings.Cut(text, ".")
	digits := strings.TrimPrefix(whole, "-")
	var b strings.Builder
	for i, r := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteString(",")
		}
		b.WriteRune(r)
	}
	if rest != "" {
		fmt.Fprintf(&b, ".%s", rest)
	}
	if whole != digits {
		return "-" + b.String()
	}
	return b.String()
}
