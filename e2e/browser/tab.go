// A tab, and what people do in it.

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
	"understudy/e2e/rig"
	"understudy/internal/sample"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Tab is a tab of a browser, with the complaints on its console and the requests to other origins.
type Tab struct {
	T    *testing.T
	Ctx  context.Context
	Home string

	Mu         sync.Mutex
	Complaints []string
	Bytes      float64 // on the wire since the last reset
}

// OpenTab opens a browser at the viewer. A console error, an exception or a
// request to any other origin fails the test.
func OpenTab(t *testing.T, home string) *Tab {
	t.Helper()
	limit := 4 * time.Minute
	if sample.IsFullRun() {
		limit = 15 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	page, end, err := Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	b := &Tab{T: t, Ctx: page, Home: home}
	origin, err := url.Parse(home)
	if err != nil {
		t.Fatal(err)
	}
	err = chromedp.Listen(page, func(event any) {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.Complaints = append(b.Complaints, "exception: "+rig.JSON(t, e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
				b.Complaints = append(b.Complaints, fmt.Sprintf("console.%s: %s", e.Type, rig.JSON(t, e.Args)))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				b.Complaints = append(b.Complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
			}
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme != "about" && (u.Host != origin.Host || u.Scheme != origin.Scheme) {
				b.Complaints = append(b.Complaints, "asked another origin: "+e.Request.URL)
			}
		case *network.EventLoadingFinished:
			b.Bytes += e.EncodedDataLength
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	Command(b, network.Enable, network.EnableParams{})
	Command(b, log.Enable, cdp.Empty{})
	Command(b, runtime.Enable, cdp.Empty{})
	Command(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	b.Resize(1024, 800)
	return b
}

// Command sends the browser one command of its protocol.
func Command[P, R any](b *Tab, cmd cdp.Command[P, R], params P) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.Ctx, rig.Patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, cmd, params); err != nil {
		b.T.Fatal(err)
	}
}

// Do runs actions in the tab. It ends the test if they fail.
func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.Ctx, rig.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fail(err)
	}
}

// Fail ends the test and shows where the browser is.
func (b *Tab) Fail(err error) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.Ctx, rig.Patience)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	b.T.Fatalf("%v\nat %.2000s", err, text)
}

// Resize gives the tab a width and a height in CSS pixels. A width below 600 is that of a telephone.
func (b *Tab) Resize(width, height int64) {
	b.T.Helper()
	Command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
}

// Open loads a page of the viewer.
func (b *Tab) Open(path string) {
	b.T.Helper()
	b.Do(chromedp.Navigate(b.Home+path), chromedp.WaitReady(chromedp.CSS("main")))
}

// Eval returns the value of a script in the page. It waits for a promise and ends the test if the script fails.
func Eval[T any](b *Tab, script string) T {
	b.T.Helper()
	v, err := TryEval[T](b, script)
	if err != nil {
		b.Fail(fmt.Errorf("%s: %w", script, err))
	}
	return v
}

// TryEval returns what a script says of a page that may be about to be replaced.
func TryEval[T any](b *Tab, script string) (T, error) {
	ctx, cancel := context.WithTimeout(b.Ctx, rig.Patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Follow runs an action that loads another page and waits for that page.
func (b *Tab) Follow(action chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.Ctx, rig.Patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, action); err != nil {
		b.Fail(err)
	}
	b.Do(chromedp.WaitReady(chromedp.CSS("footer")))
}

// CheckComplaints fails with what the browser complained about so far.
func (b *Tab) CheckComplaints(where string) {
	b.T.Helper()
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, c := range b.Complaints {
		b.T.Errorf("%s: %s", where, c)
	}
	b.Complaints = nil
}

// OpenAll opens every folded part of the page.
var OpenAll = chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach(d => d.open = true)`)

// Axe returns the script of axe-core, which looks for what people with a screen reader cannot use.
func Axe(t *testing.T) string {
	t.Helper()
	return rig.ReadFile(t, "../sdks/node/node_modules/axe-core/axe.min.js") // make setup installs it
}

// CheckAccessibility runs axe-core on the page at hand, in light and in dark. In dark the colours
// alone are looked at: nothing else differs.
func (b *Tab) CheckAccessibility(axe, where string) {
	b.T.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void](axe))
	for scheme, only := range map[string]string{
		"light": `{type:"tag",values:["wcag2a","wcag2aa","wcag21a","wcag21aa","wcag22aa","best-practice"]}`,
		"dark":  `{type:"rule",values:["color-contrast"]}`,
	} {
		Command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}, // no colour is on its way
		}})
		text := Eval[string](b, `axe.run(document,{runOnly:`+only+`,resultTypes:["violations"]}).then(r => JSON.stringify(r.violations))`)
		var all []violation
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			b.T.Fatalf("%s: axe-core says %.200s: %v", where, text, err)
		}
		for _, v := range all {
			for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
				b.T.Errorf("%s, %s: %s (%s) at %.200s\n%s", where, scheme, v.Help, v.ID, n.HTML, n.FailureSummary)
			}
		}
	}
}

// Column returns the texts of one column.
func (b *Tab) Column(title string) []string {
	b.T.Helper()
	return Eval[[]string](b, `[...document.querySelectorAll("tbody td[data-t='`+title+`']")].map(e => e.innerText.trim())`)
}

// Press types single keys.
func (b *Tab) Press(keys ...string) {
	b.T.Helper()
	for _, k := range keys {
		b.Do(chromedp.KeyEvent(k))
	}
}

// Popover opens a popover by its button, and axe-core looks at it.
func (b *Tab) Popover(axe, id string) {
	b.T.Helper()
	b.Do(chromedp.Click(chromedp.CSS(`[popovertarget="`+id+`"]`)), chromedp.WaitVisible(chromedp.CSS("#"+id)))
	b.CheckAccessibility(axe, "the popover "+id)
}

// Path returns the path and the query of the page.
func (b *Tab) Path() string {
	b.T.Helper()
	return Eval[string](b, `location.pathname + location.search`)
}

// SignIn fills the form in by keyboard and sends it.
func (b *Tab) SignIn(name, password string) {
	b.T.Helper()
	b.Do(chromedp.SetValue(chromedp.CSS(`#name`), name), chromedp.Focus(chromedp.CSS(`#password`)))
	b.Follow(chromedp.KeyEvent(password + kb.Enter))
}

// Fetched collects the addresses that the browser requests from now on. The returned function returns them.
func (b *Tab) Fetched() func() []string {
	b.T.Helper()
	var all []string
	err := chromedp.Listen(b.Ctx, func(event any) {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			all = append(all, e.Request.URL)
		}
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return func() []string {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		return slices.Clone(all)
	}
}

// Jump types into the search box, which the slash key leads to, and opens the result.
func (b *Tab) Jump(text string) {
	b.T.Helper()
	b.Do(chromedp.KeyEvent("/"))
	if at := Eval[string](b, `document.activeElement.id`); at != "q" {
		b.T.Fatalf("the slash leads to %q", at)
	}
	// The protocol types the slash even if the page cancels the key; a keyboard does not.
	b.Do(chromedp.SetValue(chromedp.CSS(`#q`), text))
	b.Follow(chromedp.KeyEvent(kb.Enter))
}

// LiveText is the script that returns the line about new rows.
const LiveText = `document.querySelector(".news")?.innerText ?? "no line"`

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID    string
	Help  string
	Nodes []struct {
		HTML           string
		FailureSummary string
	}
}
