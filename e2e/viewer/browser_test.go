// Browser: people look, filter, turn pages and copy, with a mouse, a keyboard
// and a small screen.

package viewer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
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
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// tab is a browser's tab and everything it complained about.
type tab struct {
	t    *testing.T
	ctx  context.Context
	home string

	mu         sync.Mutex
	complaints []string
	bytes      float64 // on the wire since the last reset
}

// openTab opens a browser at the viewer. A console error, an exception or a
// request to any other origin fails the test.
func openTab(t *testing.T, home string) *tab {
	t.Helper()
	limit := 4 * time.Minute
	if sample.IsFullRun() {
		limit = 15 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	page, end, err := browser.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	b := &tab{t: t, ctx: page, home: home}
	origin, err := url.Parse(home)
	if err != nil {
		t.Fatal(err)
	}
	err = chromedp.Listen(page, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, "exception: "+rig.JSON(t, e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
				b.complaints = append(b.complaints, fmt.Sprintf("console.%s: %s", e.Type, rig.JSON(t, e.Args)))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
			}
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme != "about" && (u.Host != origin.Host || u.Scheme != origin.Scheme) {
				b.complaints = append(b.complaints, "asked another origin: "+e.Request.URL)
			}
		case *network.EventLoadingFinished:
			b.bytes += e.EncodedDataLength
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	command(b, network.Enable, network.EnableParams{})
	command(b, log.Enable, cdp.Empty{})
	command(b, runtime.Enable, cdp.Empty{})
	command(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	b.size(1024, 800)
	return b
}

// command sends the browser one command of its protocol.
func command[P, R any](b *tab, cmd cdp.Command[P, R], params P) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, rig.Patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, cmd, params); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, rig.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.fail(err)
	}
}

// fail ends the test and shows where the browser is.
func (b *tab) fail(err error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, rig.Patience)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	b.t.Fatalf("%v\nat %.2000s", err, text)
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
}

// open loads a page of the viewer.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.home+path), chromedp.WaitReady(chromedp.CSS("main")))
}

// eval reads something from the page, or what it promises.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := tryEval[T](b, script)
	if err != nil {
		b.fail(fmt.Errorf("%s: %w", script, err))
	}
	return v
}

// tryEval returns what a script says of a page that may be about to be replaced.
func tryEval[T any](b *tab, script string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, rig.Patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// follow does something that loads another page, and waits until it is there.
func (b *tab) follow(action chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, rig.Patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, action); err != nil {
		b.fail(err)
	}
	b.do(chromedp.WaitReady(chromedp.CSS("footer")))
}

// calm fails with what the browser complained about so far.
func (b *tab) calm(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("%s: %s", where, c)
	}
	b.complaints = nil
}

func TestBrowserWalk(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "2000")
	b := openTab(t, demo.URL("viewer"))
	b.open("/")
	for _, word := range []string{"Twilio", "Calls", "Messages", "Accounts", "numbers"} {
		if !strings.Contains(eval[string](b, `document.body.innerText`), word) {
			t.Errorf("home does not say %q", word)
		}
	}
	b.calm("home")
	b.follow(chromedp.Click(chromedp.CSS(`a[href="/-/administration"]`)))
	if eval[int](b, `document.querySelectorAll(".speed svg").length`) == 0 {
		t.Error("administration has no drawing of latencies")
	}
	b.calm("administration")

	b.follow(chromedp.Click(chromedp.CSS(`a[href="/twilio/calls"]`)))
	if rows := eval[int](b, `document.querySelectorAll("tbody tr").length`); rows != 50 {
		t.Errorf("the list has %d rows, want 50", rows)
	}
	if head := eval[string](b, `document.querySelector("thead").innerText`); !strings.Contains(strings.ToLower(head), "from") {
		t.Errorf("the table's head is %q", head)
	}
	b.calm("list")

	b.do(openAll,
		chromedp.SetValue(chromedp.CSS(`select[name="Status"]`), "busy"))
	b.follow(chromedp.Submit(chromedp.CSS(`select[name="Status"]`)))
	address, err := url.Parse(eval[string](b, `location.href`))
	checktest.MustNoError(t, err, "filtered, the address is")
	checktest.Equal(t, address.Query().Get("Status"), "busy",
		`filtered, the address is: address.Query().Get("Status")`)
	checktest.True(t, !address.Query().Has("To"), `filtered, the address is: address.Query().Has("To") is true`)
	states := eval[[]string](b, `[...document.querySelectorAll("tbody tr td.state")].map(e => e.innerText.trim().toLowerCase())`)
	if len(states) < 20 {
		t.Errorf("filtered: %d rows", len(states))
	}
	for _, s := range states {
		if !strings.Contains(s, "busy") {
			t.Errorf("filtered by busy: a row says %q", s)
		}
	}
	b.calm("filtered list")

	first := eval[string](b, `document.querySelector("tbody").innerText`)
	b.follow(chromedp.Click(chromedp.CSS(`a[rel="next"]`)))
	second := eval[string](b, `document.querySelector("tbody").innerText`)
	if first == second {
		t.Error("the older page is the same page")
	}
	b.follow(chromedp.Click(chromedp.CSS(`a[rel="prev"]`)))
	if again := eval[string](b, `document.querySelector("tbody").innerText`); again != first {
		t.Error("newer does not lead back")
	}
	b.calm("pages")

	b.follow(chromedp.Click(chromedp.CSS(`tbody tr a[href^="/twilio/calls/CA"]`)))
	id := regexp.MustCompile(`CA[0-9a-f]{32}`).FindString(eval[string](b, `location.pathname`))
	if text := eval[string](b, `document.querySelector("main").innerText`); id == "" || !strings.Contains(text, id) {
		t.Errorf("the page of a call does not show its SID %q: %.300s", id, text)
	}
	if n := eval[int](b, `[...document.querySelectorAll("button")].filter(b => /copy/i.test(b.innerText + b.title + (b.getAttribute("aria-label") || ""))).length`); n < 2 {
		t.Errorf("the page of a call has %d copy buttons", n)
	}
	var raw map[string]any
	b.do(openAll)
	if err := json.Unmarshal([]byte(eval[string](b, `document.querySelector("details.raw pre").textContent`)), &raw); err != nil || raw["sid"] != id {
		t.Errorf("the raw JSON is that of %v: %v", raw["sid"], err)
	}
	b.calm("detail")

	b.follow(chromedp.Click(chromedp.CSS(`main a[href*="/twilio/accounts/"]`)))
	if path := eval[string](b, `location.pathname`); path != "/twilio/accounts/"+rig.Account {
		t.Errorf("the account's link leads to %s", path)
	}
	b.calm("cross-link")
}

// The weight of a page is what a first visit costs on the wire: at most 30,000 bytes. A page without the second style
// sheet shows nothing that the sheet is for.
func TestBrowserWeight(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "2000")
	var second string
	for _, path := range []string{"/", "/twilio/calls", "/twilio/messages", "/search?q=hello", "/search?q=kind%3Amessages"} {
		b := openTab(t, demo.URL("viewer"))
		b.mu.Lock()
		b.bytes = 0
		b.mu.Unlock()
		b.open(path)
		rig.Await(t, func() string {
			if eval[string](b, `document.readyState`) != "complete" {
				return "still loading"
			}
			return ""
		})
		b.mu.Lock()
		weight := b.bytes
		b.mu.Unlock()
		t.Logf("%s: %.1f KB on the wire", path, weight/1000)
		if weight < 2000 || weight > 30_000 {
			t.Errorf("%s weighs %.0f bytes on the wire, want at most 30,000", path, weight)
		}
		if path == "/" {
			second = eval[string](b, `document.querySelector("link[href*='/more.']").href`)
			continue
		}
		for _, rule := range eval[[]string](b, fmt.Sprintf(`fetch(%q).then(r => r.text()).then(text => {
			const sheet = new CSSStyleSheet();
			sheet.replaceSync(text);
			const rules = all => [...all].flatMap(r => r.selectorText ? r.selectorText : r.cssRules ? rules(r.cssRules) : []);
			return rules(sheet.cssRules).filter(s => document.querySelector(s.replaceAll(/::[a-z-]+/g, "")));
		})`, second)) {
			t.Errorf("%s has what only the second style sheet is for: %s", path, rule)
		}
	}
}

// openAll opens every folded part of the page.
var openAll = chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach(d => d.open = true)`)

// focus is what has the keyboard's focus.
const focus = `(() => { const e = document.activeElement; return e === document.body ? "" :
	e.tagName.toLowerCase() + " " + (e.getAttribute("href") || e.name || e.id || "") + " " + (e.innerText || "").trim().slice(0, 40) })()`

func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := openTab(t, demo.URL("viewer"))
	b.open("/twilio/calls")
	b.do(openAll)
	var order []string
	for len(order) < 300 { // with everything unfolded: each filter and each value to narrow by is a stop
		b.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](b, focus)
		if at == "" {
			break
		}
		order = append(order, at)
		// What has the focus can be seen: it is on the screen and drawn around.
		if !eval[bool](b, `(() => { const r = document.activeElement.getBoundingClientRect(); return r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth })()`) {
			t.Errorf("%s has the focus off the screen", at)
		}
		// The browser itself marks the part of a date that has the focus.
		if !eval[bool](b, `(() => { if (document.activeElement.matches("[type^=date]")) return true; const s = getComputedStyle(document.activeElement); return s.outlineStyle !== "none" && s.outlineWidth !== "0px" || s.boxShadow !== "none" })()`) {
			t.Errorf("%s has the focus, and nothing shows it", at)
		}
		if strings.HasPrefix(at, "a /twilio/calls/CA") {
			break
		}
	}
	position := -1
	for _, want := range []string{"#main", "a / ", "/twilio/calls", "/twilio/messages", "button", "input q", "/-/timezone", "#rows", "summary", "Status", "PageSize", "button", "/twilio/calls/CA"} {
		found := -1
		for i := position + 1; i < len(order); i++ {
			if strings.Contains(order[i], want) {
				found = i
				break
			}
		}
		if found < 0 {
			t.Fatalf("the keyboard does not reach %q after stop %d of %q", want, position, order)
		}
		position = found
	}
	// The skip link leads past the header.
	b.open("/twilio/calls")
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	if at := eval[string](b, `document.activeElement.id`); at != "main" {
		t.Errorf("the skip link leads to %q", at)
	}
	// The next one leads past filters and values, also where all are unfolded.
	for _, path := range []string{"/search?q=kind:calls", "/twilio/calls"} {
		b.open(path)
		b.do(openAll, chromedp.Focus(chromedp.CSS(`.skip`)), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
		if at := eval[string](b, focus); !strings.Contains(at, "#rows") {
			t.Errorf("%s: after the skip link comes %q", path, at)
		}
		b.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
		if at := eval[string](b, focus); !strings.HasPrefix(at, "a /twilio/calls/CA") {
			t.Errorf("%s: past the filters comes %q", path, at)
		}
	}
	// A record opens from the keyboard alone.
	b.do(chromedp.Focus(chromedp.CSS(`tbody a[href^="/twilio/calls/CA"]`)))
	b.follow(chromedp.KeyEvent(kb.Enter))
	if path := eval[string](b, `location.pathname`); !strings.HasPrefix(path, "/twilio/calls/CA") {
		t.Errorf("Enter on a record leads to %s", path)
	}
	b.calm("keyboard")
}

// On a small screen a page scrolls down and never sideways.
func TestBrowserSmallScreen(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "500")
	var page struct {
		Messages    []struct{ Sid, From, To string }
		Calls       []struct{ Sid string }
		Conferences []struct{ Sid string }
	}
	user := rig.Account + ":" + rig.DemoToken
	for _, path := range []string{"/Messages.json", "/Calls.json", "/Conferences.json"} {
		if err := json.Unmarshal(rig.Get(t, user, demo.URL("twilio")+rig.Base+path).Body, &page); err != nil {
			t.Fatal(err)
		}
	}
	b := openTab(t, demo.URL("viewer"))
	run := sample.OneIn(t, 9)
	for _, path := range []string{
		"/", "/twilio/calls", "/twilio/messages", "/twilio/accounts", "/twilio/incoming_phone_numbers", "/twilio/calls?Status=busy",
		"/twilio/calls/" + page.Calls[0].Sid, "/twilio/messages/" + page.Messages[0].Sid, "/twilio/accounts/" + rig.Account,
		"/twilio/calls/CA00000000000000000000000000000000", "/twilio/calls?nonsense=1", "/nowhere",
		"/twilio/number/" + page.Messages[0].From, "/twilio/number/" + page.Messages[0].From + "/" + page.Messages[0].To, "/search", "/search?q=hello+there", "/search?q=-zzz", "/search?q=(", "/twilio/calls?understudy.sort=-duration&understudy.narrow=direction%3Dinbound", "/twilio/messages?understudy.columns=body%2Cfrom%2Cto%2Csid%2Caccount_sid%2Cdate_created%2Cdate_updated%2Curi%2Cprice%2Cprice_unit%2Cstatus%2Cerror_code",
		"/twilio/alerts", "/twilio/recordings", "/twilio/notifications", "/twilio/usage_records", "/twilio/monitor_events", "/twilio/participants", "/twilio/balance",
		"/twilio/available_phone_numbers?CountryCode=US", "/twilio/conferences/" + page.Conferences[0].Sid,
		"/-/audit", "/-/administration", "/-/profile", "/-/roles", "/-/roles/support", "/-/connect", "/-/connect/masked", "/-/watches", "/-/timezone?back=/",
		"/-/forecast/twilio/balance.balance", "/search/sums?kind=messages&sum=price&by=day&by=direction", "/-/do/twilio/messages/send",
	} {
		for _, width := range []int64{360, 768, 1920} {
			if !run() {
				continue
			}
			b.size(width, 800)
			b.open(path)
			if cut := eval[[]string](b, `[...document.querySelectorAll(".facets summary")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)`); len(cut) > 0 {
				t.Errorf("%s at %d px: %q lie upon what is beside them", path, width, cut)
			}
			b.do(openAll)
			if wide := eval[int64](b, `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`); wide > width {
				t.Errorf("%s at %d px is %d px wide: %s", path, width, wide,
					eval[string](b, fmt.Sprintf(`[...document.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > %d + 1).slice(0, 5).map(e => e.tagName + "." + e.className).join(", ")`, width)))
			}
		}
	}
	// Errors answer with their status, which a browser logs; nothing else may be there.
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		if !strings.Contains(c, "status of 404") && !strings.Contains(c, "status of 400") {
			t.Error(c)
		}
	}
}

// A browser says its timezone once; times are shown and asked for in it, and
// upstream is asked in UTC.
func TestBrowserTimezone(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300", "--epoch", "2026-06-01T12:00:00Z")
	b := openTab(t, demo.URL("viewer"))
	command(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tehran"})
	b.do(chromedp.Navigate(b.home + "/twilio/calls?Status=completed"))
	rig.Await(t, func() string {
		zone, err := tryEval[string](b, `document.querySelector("a[href^='/-/timezone']")?.lastChild.textContent.trim() ?? ""`)
		if err != nil || zone != "Asia/Tehran" {
			return fmt.Sprintf("the page is still in %q, %v", zone, err)
		}
		return ""
	})
	b.do(chromedp.WaitReady(chromedp.CSS("footer")))
	if path := eval[string](b, `location.pathname + location.search`); path != "/twilio/calls?Status=completed" {
		t.Errorf("saying the timezone leads to %s", path)
	}
	tehran := time.FixedZone("", 3*3600+1800)
	shown := func() (all []time.Time) {
		for _, both := range eval[[][]string](b, `[...document.querySelectorAll("#rows td.when time")].map(e => [e.dateTime, e.textContent, e.title])`) {
			at, err := time.Parse(time.RFC3339, both[0])
			checktest.MustNoError(t, err, "a time is")
			checktest.Contains(t, both[1], at.Format("15:04"), "a time is: both[1]")
			checktest.Contains(t, both[2], at.Format("15:04:05"), "a time is: both[2]")
			checktest.Contains(t, both[2], at.UTC().Format("15:04:05")+" UTC", "a time is: both[2]")
			checktest.Equal(t, at.Format("-0700"), at.In(tehran).Format("-0700"), `a time is: at.Format("-0700")`)
			all = append(all, at)
		}
		return all
	}
	stamps := shown()
	if len(stamps) < 20 {
		t.Fatalf("%d times on the page", len(stamps))
	}
	var held struct {
		Calls []struct {
			Start string `json:"start_time"`
		}
	}
	if err := json.Unmarshal([]byte(eval[string](b, `(() => { const r = new XMLHttpRequest(); r.open("GET", "/twilio/calls.json?Status=completed", false); r.send(); return r.responseText })()`)), &held); err != nil {
		t.Fatal(err)
	}
	for i, c := range held.Calls {
		{
			want, err := time.Parse(time.RFC1123Z, c.Start)
			checktest.MustNoError(t, err, "row %d of %v", i, stamps)
			checktest.MustTrue(t, i < len(stamps), "row %d of %v: i is %v", i, stamps, i)
			checktest.MustTrue(t, stamps[i].Equal(want), "row %d of %v: stamps[i].Equal(want) is false", i, stamps)
		}
	}
	b.do(openAll, chromedp.SetValue(chromedp.CSS(`.filters input[name="StartTime<"]`), "2026-05-20T12:00"))
	b.follow(chromedp.Submit(chromedp.CSS(`.filters input[name="StartTime<"]`)))
	address, err := url.Parse(eval[string](b, `location.href`))
	if err != nil || address.Query().Get("StartTime<") != "2026-05-20T08:30:00Z" {
		t.Errorf("12:00 in Tehran is asked as %v", address)
	}
	if again := eval[string](b, `document.querySelector('.filters input[name="StartTime<"]').value`); again != "2026-05-20T12:00" {
		t.Errorf("and shown again as %s", again)
	}
	limit := time.Date(2026, 5, 20, 8, 30, 0, 0, time.UTC)
	for _, at := range shown() {
		if at.After(limit) {
			t.Errorf("a call that started at %s is after %v", at, limit)
		}
	}
	b.calm("timezone")
}
