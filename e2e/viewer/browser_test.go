// Browser: people look, filter, turn pages and copy, with a mouse, a keyboard
// and a small screen.

package viewer

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

func TestBrowserWalk(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "2000")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/")
	for _, word := range []string{"Twilio", "Calls", "Messages", "Accounts", "numbers"} {
		if !strings.Contains(browser.Eval[string](b, `document.body.innerText`), word) {
			t.Errorf("home does not say %q", word)
		}
	}
	b.CheckComplaints("home")
	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/-/administration"]`)))
	if browser.Eval[int](b, `document.querySelectorAll(".speed svg").length`) == 0 {
		t.Error("administration has no drawing of latencies")
	}
	b.CheckComplaints("administration")

	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/twilio/calls"]`)))
	if rows := browser.Eval[int](b, `document.querySelectorAll("tbody tr").length`); rows != 50 {
		t.Errorf("the list has %d rows, want 50", rows)
	}
	if head := browser.Eval[string](b, `document.querySelector("thead").innerText`); !strings.Contains(strings.ToLower(head), "from") {
		t.Errorf("the table's head is %q", head)
	}
	b.CheckComplaints("list")

	b.Do(browser.OpenAll,
		chromedp.SetValue(chromedp.CSS(`select[name="Status"]`), "busy"))
	b.Follow(chromedp.Submit(chromedp.CSS(`select[name="Status"]`)))
	address, err := url.Parse(browser.Eval[string](b, `location.href`))
	checktest.MustNoError(t, err, "filtered, the address is")
	checktest.Equal(t, address.Query().Get("Status"), "busy",
		`filtered, the address is: address.Query().Get("Status")`)
	checktest.True(t, !address.Query().Has("To"), `filtered, the address is: address.Query().Has("To") is true`)
	states := browser.Eval[[]string](b, `[...document.querySelectorAll("tbody tr td.state")].map(e => e.innerText.trim().toLowerCase())`)
	if len(states) < 20 {
		t.Errorf("filtered: %d rows", len(states))
	}
	for _, s := range states {
		if !strings.Contains(s, "busy") {
			t.Errorf("filtered by busy: a row says %q", s)
		}
	}
	b.CheckComplaints("filtered list")

	first := browser.Eval[string](b, `document.querySelector("tbody").innerText`)
	b.Follow(chromedp.Click(chromedp.CSS(`a[rel="next"]`)))
	second := browser.Eval[string](b, `document.querySelector("tbody").innerText`)
	if first == second {
		t.Error("the older page is the same page")
	}
	b.Follow(chromedp.Click(chromedp.CSS(`a[rel="prev"]`)))
	if again := browser.Eval[string](b, `document.querySelector("tbody").innerText`); again != first {
		t.Error("newer does not lead back")
	}
	b.CheckComplaints("pages")

	b.Follow(chromedp.Click(chromedp.CSS(`tbody tr a[href^="/twilio/calls/CA"]`)))
	id := regexp.MustCompile(`CA[0-9a-f]{32}`).FindString(browser.Eval[string](b, `location.pathname`))
	if text := browser.Eval[string](b, `document.querySelector("main").innerText`); id == "" || !strings.Contains(text, id) {
		t.Errorf("the page of a call does not show its SID %q: %.300s", id, text)
	}
	if n := browser.Eval[int](b, `[...document.querySelectorAll("button")].filter(b => /copy/i.test(b.innerText + b.title + (b.getAttribute("aria-label") || ""))).length`); n < 2 {
		t.Errorf("the page of a call has %d copy buttons", n)
	}
	var raw map[string]any
	b.Do(browser.OpenAll)
	if err := json.Unmarshal([]byte(browser.Eval[string](b, `document.querySelector("details.raw pre").textContent`)), &raw); err != nil || raw["sid"] != id {
		t.Errorf("the raw JSON is that of %v: %v", raw["sid"], err)
	}
	b.CheckComplaints("detail")

	b.Follow(chromedp.Click(chromedp.CSS(`main a[href*="/twilio/accounts/"]`)))
	if path := browser.Eval[string](b, `location.pathname`); path != "/twilio/accounts/"+rig.Account {
		t.Errorf("the account's link leads to %s", path)
	}
	b.CheckComplaints("cross-link")
}

// The weight of a page is what a first visit costs on the wire: at most 30,000 bytes. A page without the second style
// sheet shows nothing that the sheet is for.
func TestBrowserWeight(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "2000")
	var second string
	for _, path := range []string{"/", "/twilio/calls", "/twilio/messages", "/search?q=hello", "/search?q=kind%3Amessages"} {
		b := browser.OpenTab(t, demo.URL("viewer"))
		b.Mu.Lock()
		b.Bytes = 0
		b.Mu.Unlock()
		b.Open(path)
		rig.Await(t, func() string {
			if browser.Eval[string](b, `document.readyState`) != "complete" {
				return "still loading"
			}
			return ""
		})
		b.Mu.Lock()
		weight := b.Bytes
		b.Mu.Unlock()
		t.Logf("%s: %.1f KB on the wire", path, weight/1000)
		if weight < 2000 || weight > 30_000 {
			t.Errorf("%s weighs %.0f bytes on the wire, want at most 30,000", path, weight)
		}
		if path == "/" {
			second = browser.Eval[string](b, `document.querySelector("link[href*='/more.']").href`)
			continue
		}
		for _, rule := range browser.Eval[[]string](b, fmt.Sprintf(`fetch(%q).then(r => r.text()).then(text => {
			const sheet = new CSSStyleSheet();
			sheet.replaceSync(text);
			const rules = all => [...all].flatMap(r => r.selectorText ? r.selectorText : r.cssRules ? rules(r.cssRules) : []);
			return rules(sheet.cssRules).filter(s => document.querySelector(s.replaceAll(/::[a-z-]+/g, "")));
		})`, second)) {
			t.Errorf("%s has what only the second style sheet is for: %s", path, rule)
		}
	}
}

// focus is what has the keyboard's focus.
const focus = `(() => { const e = document.activeElement; return e === document.body ? "" :
	e.tagName.toLowerCase() + " " + (e.getAttribute("href") || e.name || e.id || "") + " " + (e.innerText || "").trim().slice(0, 40) })()`

func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/twilio/calls")
	b.Do(browser.OpenAll)
	var order []string
	for len(order) < 300 { // with everything unfolded: each filter and each value to narrow by is a stop
		b.Do(chromedp.KeyEvent(kb.Tab))
		at := browser.Eval[string](b, focus)
		if at == "" {
			break
		}
		order = append(order, at)
		// What has the focus can be seen: it is on the screen and drawn around.
		if !browser.Eval[bool](b, `(() => { const r = document.activeElement.getBoundingClientRect(); return r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth })()`) {
			t.Errorf("%s has the focus off the screen", at)
		}
		// The browser itself marks the part of a date that has the focus.
		if !browser.Eval[bool](b, `(() => { if (document.activeElement.matches("[type^=date]")) return true; const s = getComputedStyle(document.activeElement); return s.outlineStyle !== "none" && s.outlineWidth !== "0px" || s.boxShadow !== "none" })()`) {
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
	b.Open("/twilio/calls")
	b.Do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	if at := browser.Eval[string](b, `document.activeElement.id`); at != "main" {
		t.Errorf("the skip link leads to %q", at)
	}
	// The next one leads past filters and values, also where all are unfolded.
	for _, path := range []string{"/search?q=kind:calls", "/twilio/calls"} {
		b.Open(path)
		b.Do(browser.OpenAll, chromedp.Focus(chromedp.CSS(`.skip`)), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
		if at := browser.Eval[string](b, focus); !strings.Contains(at, "#rows") {
			t.Errorf("%s: after the skip link comes %q", path, at)
		}
		b.Do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
		if at := browser.Eval[string](b, focus); !strings.HasPrefix(at, "a /twilio/calls/CA") {
			t.Errorf("%s: past the filters comes %q", path, at)
		}
	}
	// A record opens from the keyboard alone.
	b.Do(chromedp.Focus(chromedp.CSS(`tbody a[href^="/twilio/calls/CA"]`)))
	b.Follow(chromedp.KeyEvent(kb.Enter))
	if path := browser.Eval[string](b, `location.pathname`); !strings.HasPrefix(path, "/twilio/calls/CA") {
		t.Errorf("Enter on a record leads to %s", path)
	}
	b.CheckComplaints("keyboard")
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
	b := browser.OpenTab(t, demo.URL("viewer"))
	run := sample.OneIn(t, 9)
	for _, path := range []string{
		"/", "/twilio/calls", "/twilio/messages", "/twilio/accounts", "/twilio/incoming_phone_numbers", "/twilio/calls?Status=busy",
		"/twilio/calls/" + page.Calls[0].Sid, "/twilio/messages/" + page.Messages[0].Sid, "/twilio/accounts/" + rig.Account,
		"/twilio/calls/CA00000000000000000000000000000000", "/twilio/calls?nonsense=1", "/nowhere",
		"/twilio/number/" + page.Messages[0].From, "/twilio/number/" + page.Messages[0].From + "/" + page.Messages[0].To, "/search", "/search?q=hello+there", "/search?q=-zzz", "/search?q=(", "/twilio/calls?understudy.sort=-duration&understudy.narrow=direction%3Dinbound", "/twilio/messages?understudy.columns=body%2Cfrom%2Cto%2Csid%2Caccount_sid%2Cdate_created%2Cdate_updated%2Curi%2Cprice%2Cprice_unit%2Cstatus%2Cerror_code",
		"/twilio/alerts", "/twilio/recordings", "/twilio/notifications", "/twilio/usage_records", "/twilio/monitor_events", "/twilio/participants", "/twilio/balance",
		"/twilio/available_phone_numbers?CountryCode=US", "/twilio/conferences/" + page.Conferences[0].Sid,
		"/-/audit", "/-/administration", "/-/profile", "/-/locks", "/-/roles", "/-/roles/support", "/-/connect", "/-/connect/masked", "/-/watches", "/-/timezone?back=/",
		"/-/forecast/twilio/balance.balance", "/search/sums?kind=messages&sum=price&by=day&by=direction", "/-/do/twilio/messages/send",
	} {
		for _, width := range []int64{360, 768, 1920} {
			if !run() {
				continue
			}
			b.Resize(width, 800)
			b.Open(path)
			if cut := browser.Eval[[]string](b, `[...document.querySelectorAll(".facets summary")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)`); len(cut) > 0 {
				t.Errorf("%s at %d px: %q lie upon what is beside them", path, width, cut)
			}
			b.Do(browser.OpenAll)
			if wide := browser.Eval[int64](b, `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`); wide > width {
				t.Errorf("%s at %d px is %d px wide: %s", path, width, wide,
					browser.Eval[string](b, fmt.Sprintf(`[...document.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > %d + 1).slice(0, 5).map(e => e.tagName + "." + e.className).join(", ")`, width)))
			}
		}
	}
	// Errors answer with their status, which a browser logs; nothing else may be there.
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, c := range b.Complaints {
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
	b := browser.OpenTab(t, demo.URL("viewer"))
	browser.Command(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tehran"})
	b.Do(chromedp.Navigate(b.Home + "/twilio/calls?Status=completed"))
	rig.Await(t, func() string {
		zone, err := browser.TryEval[string](b, `document.querySelector("a[href^='/-/timezone']")?.lastChild.textContent.trim() ?? ""`)
		if err != nil || zone != "Asia/Tehran" {
			return fmt.Sprintf("the page is still in %q, %v", zone, err)
		}
		return ""
	})
	b.Do(chromedp.WaitReady(chromedp.CSS("footer")))
	if path := browser.Eval[string](b, `location.pathname + location.search`); path != "/twilio/calls?Status=completed" {
		t.Errorf("saying the timezone leads to %s", path)
	}
	tehran := time.FixedZone("", 3*3600+1800)
	shown := func() (all []time.Time) {
		for _, both := range browser.Eval[[][]string](b, `[...document.querySelectorAll("#rows td.when time")].map(e => [e.dateTime, e.textContent, e.title])`) {
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
	if err := json.Unmarshal([]byte(browser.Eval[string](b, `(() => { const r = new XMLHttpRequest(); r.open("GET", "/twilio/calls.json?Status=completed", false); r.send(); return r.responseText })()`)), &held); err != nil {
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
	b.Do(browser.OpenAll, chromedp.SetValue(chromedp.CSS(`.filters input[name="StartTime<"]`), "2026-05-20T12:00"))
	b.Follow(chromedp.Submit(chromedp.CSS(`.filters input[name="StartTime<"]`)))
	address, err := url.Parse(browser.Eval[string](b, `location.href`))
	if err != nil || address.Query().Get("StartTime<") != "2026-05-20T08:30:00Z" {
		t.Errorf("12:00 in Tehran is asked as %v", address)
	}
	if again := browser.Eval[string](b, `document.querySelector('.filters input[name="StartTime<"]').value`); again != "2026-05-20T12:00" {
		t.Errorf("and shown again as %s", again)
	}
	limit := time.Date(2026, 5, 20, 8, 30, 0, 0, time.UTC)
	for _, at := range shown() {
		if at.After(limit) {
			t.Errorf("a call that started at %s is after %v", at, limit)
		}
	}
	b.CheckComplaints("timezone")
}
