// Package pagetest opens pages of the bench in a real Chromium, for tests.
package pagetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Open opens the page of the file as a reader at a desk does, in the dark, on a phone and on
// paper, clicks all that can be clicked and points at all charts. It fails the test unless
// the page has so many charts, each seen and with its table, and when the page complains on
// the console, asks the network for anything, or runs a script that sets window.foreign,
// which tests have in names.
func Open(t *testing.T, file string, want int) {
	t.Helper()
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: file}).String()
	var wrong faults
	ctx := browser(t, wrong.listen)
	do(ctx, t, "start", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.Enable, network.EnableParams{})
		if err == nil {
			_, err = cdp.Call(ctx, tab, log.Enable, cdp.Empty{})
		}
		return err
	}))
	// Were nothing listened to, nothing would be wrong.
	evaluate[bool](ctx, t, `console.info("heard"), fetch("http://127.0.0.1:1/").catch(() => {}).then(() => true)`)
	if heard := strings.Join(wrong.take(), "\n"); !strings.Contains(heard, "heard") || !strings.Contains(heard, "asks the network") {
		t.Fatalf("the browser's console and requests are not heard: %q", heard)
	}

	colors := make(map[string]string) // of the charts' text, by medium
	for _, medium := range []struct {
		name, media, scheme string
		width, height       int64
		mobile              bool
	}{
		{"desktop", "", "light", 1280, 800, false},
		{"dark", "", "dark", 1280, 800, false},
		{"phone", "", "light", 390, 844, true},
		{"paper", "print", "dark", 794, 1123, false},
	} {
		t.Run(medium.name, func(t *testing.T) {
			do(ctx, t, "emulate", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				_, err := cdp.Call(ctx, tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
					Width: medium.width, Height: medium.height, DeviceScaleFactor: 1, Mobile: medium.mobile,
				})
				if err == nil {
					_, err = cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
						Media: medium.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: medium.scheme}},
					})
				}
				return err
			}))
			do(ctx, t, "open", chromedp.Navigate(address))
			charts := evaluate[[]seen](ctx, t, lookAtCharts)
			wide, inner := evaluate[float64](ctx, t, `document.scrollingElement.scrollWidth`), evaluate[float64](ctx, t, `innerWidth`)
			if wide > inner || inner > float64(medium.width) {
				t.Errorf("the page is %v wide in a window of %v", wide, inner)
			}
			if len(charts) != want {
				t.Fatalf("got %d charts, want %d", len(charts), want)
			}
			for _, c := range charts {
				if c.Shapes < 4 || c.Width < 100 || c.Width > float64(medium.width) {
					t.Errorf("%s: nothing is seen: %+v", c.Name, c)
				}
				if c.Rows < 2 {
					t.Errorf("%s has no table: %+v", c.Name, c)
				}
				colors[medium.name] = c.Color
			}

			before := evaluate[[]seen](ctx, t, lookAtCharts)
			clicked := evaluate[int](ctx, t, clickAll)
			closed := evaluate[int](ctx, t, `document.querySelectorAll("details:not([open])").length`)
			after := evaluate[[]seen](ctx, t, lookAtCharts)
			buttons := 0
			for i, c := range before {
				buttons += c.Buttons
				if c.Buttons > 0 && after[i].Shapes >= c.Shapes {
					t.Errorf("%s: with all series hidden %d shapes are drawn, of %d", c.Name, after[i].Shapes, c.Shapes)
				}
			}
			if clicked != buttons+len(charts) || closed != 0 {
				t.Errorf("clicked %d, want %d buttons and %d tables; %d tables are closed", clicked, buttons, len(charts), closed)
			}
			evaluate[int](ctx, t, clickAll)
			after = evaluate[[]seen](ctx, t, lookAtCharts)
			for i, c := range before {
				if after[i].Shapes != c.Shapes {
					t.Errorf("%s: shown again it has %d shapes, want %d", c.Name, after[i].Shapes, c.Shapes)
				}
			}
		})
	}
	if colors["desktop"] == colors["dark"] || colors["paper"] != colors["desktop"] {
		t.Errorf("colors of text: got %v, want dark to differ, and paper as light", colors)
	}
	for i, text := range evaluate[[]string](ctx, t, hoverAll) {
		if text == "" {
			t.Errorf("chart %d tells nothing under the pointer", i)
		}
	}
	if evaluate[bool](ctx, t, `"foreign" in window`) {
		t.Error("a script from a name in the report ran")
	}
	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPrintBackground(), chromedp.PDFPaper(chromedp.PaperA4)))
	if err != nil {
		t.Fatal(err)
	}
	if len(pdf) < 10_000 {
		t.Errorf("printed %d bytes", len(pdf))
	}
	for _, w := range wrong.take() {
		t.Error(w)
	}
}

// browserNames are what Chromium is called.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// browser starts a real Chromium, which ends with the test and tells what happens in it.
func browser(t *testing.T, listen func(event any)) context.Context {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	for _, name := range browserNames {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	if path == "" {
		t.Fatalf("there is no Chromium: install it (Debian: apt-get install chromium), or name it in CHROMIUM")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, // which Chromium cannot have as root; it opens a file of ours alone
	)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(listen))
	t.Cleanup(cancel)
	return ctx
}

// faults are what a page must not do: complain, throw, or ask for more than its file.
type faults struct {
	mu  sync.Mutex
	all []string
}

func (f *faults) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprintf("console.%s", e.Type)
		for _, a := range e.Args {
			text += fmt.Sprintf(" %s %s", a.Value, a.Description)
		}
	case *runtime.EventExceptionThrown:
		text = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		text = fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, "file://") && !strings.HasPrefix(u, "data:") {
			text = "asks the network for " + u
		}
	}
	if text != "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, text)
	}
}

// take returns what there was since the last take.
func (f *faults) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.all
	f.all = nil
	return all
}

// seen is one of the page's charts, as the browser shows it.
type seen struct {
	Name    string
	Shapes  int     // that are drawn
	Width   float64 // of the drawing
	Rows    int     // of its table
	Buttons int
	Color   string // of the text in it
}

const lookAtCharts = `[...document.querySelectorAll("figure")].map((f) => {
	const svg = f.querySelector(".chart svg");
	return {
		Name: f.querySelector("h3").textContent,
		Shapes: svg ? [...svg.querySelectorAll("path")].filter((p) => p.getBBox().width > 0 || p.getBBox().height > 0).length : 0,
		Width: svg ? svg.getBoundingClientRect().width : 0,
		Rows: f.querySelectorAll("tbody tr").length,
		Buttons: f.querySelectorAll("button").length,
		Color: svg ? svg.querySelector("text").getAttribute("fill") || "" : "",
	};
})`

// clickAll clicks everything that can be clicked, waits until the page has drawn, and
// returns how many there were.
const clickAll = `(async () => {
	const all = [...document.querySelectorAll("button, summary, a")];
	for (const e of all) e.click();
	await new Promise((done) => requestAnimationFrame(done));
	return all.length;
})()`

// hoverAll moves the pointer over each chart, and returns the text that each shows beside
// it.
const hoverAll = `(async () => {
	const shown = [];
	for (const chart of document.querySelectorAll(".chart")) {
		chart.scrollIntoView();
		const at = chart.querySelector("svg").getBoundingClientRect();
		let text = "";
		for (let y = at.top + 4; y < at.bottom && !text; y += 6) {
			for (let x = at.left + 4; x < at.right && !text; x += 6) {
				const target = chart.querySelector("svg").parentNode;
				target.dispatchEvent(new MouseEvent("mousemove", { clientX: x, clientY: y, bubbles: true }));
				text = [...chart.children].slice(1).map((e) => e.textContent).join("");
			}
			await new Promise((done) => setTimeout(done));
		}
		shown.push(text);
	}
	return shown;
})()`

func do(ctx context.Context, t *testing.T, what string, action chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, action); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// evaluate runs a script in the page, and waits for what it promises.
func evaluate[T any](ctx context.Context, t *testing.T, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}
