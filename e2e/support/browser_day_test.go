// A day of support: a caller is on the line, a message failed, and others are to be told, in a real browser.

package support

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/signin"
)

// All of it is done on a telephone. No step needs a page of help, and none takes more than two clicks from the one before.
func TestBrowserADayOfSupport(t *testing.T) {
	t.Parallel()
	script := browser.Axe(t)
	users := filepath.Join(t.TempDir(), "users")
	if err := signin.UpdateFile(users, func(u *signin.Users) error { return u.Add("sam", "desk", rig.AnnasPassword) }); err != nil {
		t.Fatal(err)
	}
	api := rig.StartAPI(t, "--latency", "1ms", "--records", "1000", "--epoch", time.Now().UTC().Format(time.RFC3339)).URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: api, Users: rig.ReadFile(t, users), Source: "sync: [calls, messages]",
		Roles: "  desk: {twilio: {\"*\": see, phone: last4, do: [lookup, note, messages.send]}}\n",
		More:  "watches: {hosts: [hooks.example.com]}\n"})
	web := house.URL("viewer")
	rig.Control(t, api, "/-/advance", `{"messages":60}`) // some of today fail
	for range 6 {
		rig.Control(t, api, "/-/advance", "{}")
	}
	failed := failedMessage(t, web)
	b := browser.OpenTab(t, web)
	browser.Command(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{ // it is about noon, so that the day does not end here
		TimezoneID: fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12)})
	shot := func(name string) {
		t.Helper()
		b.CheckComplaints(name)
		if slices.Contains([]string{"caller", "handled", "send", "review"}, name) { // axe sees the others in TestBrowserAxe
			b.CheckAccessibility(script, name)
		}
		dir := os.Getenv("SCREENS")
		for i := 0; dir != "" && i < 4; i++ {
			width, scheme := []int64{360, 1280}[i%2], []string{"light", "dark"}[i/2]
			browser.Command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
			b.Resize(width, 740)
			b.Resize(width, min(max(740, browser.Eval[int64](b, `document.documentElement.scrollHeight`)), 2400))
			png, err := chromedp.Run(b.Ctx, chromedp.CaptureScreenshot())
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("day-%s-%d-%s.png", name, width, scheme)), png, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b.Resize(360, 740)
	}
	says := func(where string, texts ...string) {
		t.Helper()
		main := browser.Eval[string](b, `document.querySelector("main").innerText`)
		for _, text := range texts {
			if !strings.Contains(main, text) {
				t.Errorf("%s does not say %q: %.600s", where, text, main)
			}
		}
	}
	b.Resize(360, 740)
	b.Open("/")
	shot("sign-in")
	b.SignIn("sam", rig.AnnasPassword)
	shot("home")
	// The caller's number is typed whole; calls and messages stand in one list.
	b.Follow(chromedp.SendKeys(chromedp.CSS("#q"), failed.To+kb.Enter))
	shot("caller")
	record := `#rows a[href="/twilio/messages/` + failed.Sid + `"]`
	// The message that failed, and why in words.
	b.Follow(chromedp.Click(chromedp.CSS(record)))
	shot("message")
	says("the message", failed.Status, browser.Eval[string](b, `document.querySelector(".errcode .note, .why")?.innerText ?? "no reason"`))
	if browser.Eval[bool](b, `document.querySelector("main").innerText.includes("`+failed.To[1:]+`")`) {
		t.Error("the record shows the number")
	}
	// It is marked as handled, with a note.
	b.Do(chromedp.SendKeys(chromedp.CSS("#note"), "Called back, sent it again."))
	b.Follow(chromedp.Click(chromedp.CSS(`.notes [value=add]`)))
	b.Follow(chromedp.Click(chromedp.CSS(`.notes [value=handled]`)))
	shot("handled")
	says("the record", "handled", "Called back, sent it again.")
	// Another message is sent; its segments are counted while it is typed.
	b.Follow(chromedp.Click(chromedp.CSS(`.kinds a[href="/twilio/messages"]`)))
	shot("messages")
	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/-/do/twilio/messages/send"]`)))
	b.Do(chromedp.SendKeys(chromedp.CSS("#f-From"), failed.From), chromedp.SendKeys(chromedp.CSS("#f-To"), failed.To), chromedp.SendKeys(chromedp.CSS("#f-Body"), strings.Repeat("Your parcel is on its way. ", 7)))
	rig.Await(t, func() string {
		if form := browser.Eval[string](b, `document.querySelector(".action").innerText`); !strings.Contains(form, "2 segments") {
			return "the form says " + form
		}
		return ""
	})
	shot("send")
	b.Follow(chromedp.Click(chromedp.CSS(`button[value="review"]`)))
	shot("review")
	b.Follow(chromedp.Click(chromedp.CSS(`button[value="do"]`)))
	shot("sent")
	says("the page after it", "The message is on its way.")
	// The day's failures are exported.
	b.Follow(chromedp.Click(chromedp.CSS(".brand")))
	shot("home-after")
	const today = `.today tr:has(a[href*="messages"]) td:nth-of-type(1) a`
	count := browser.Eval[string](b, `document.querySelector('`+today+`').innerText`)
	b.Follow(chromedp.Click(chromedp.CSS(today)))
	shot("failures")
	data := browser.Eval[string](b, `fetch(document.querySelector("#exports a[href*='.csv']").href).then((r) => r.text())`)
	rows, err := csv.NewReader(strings.NewReader(data)).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("the export is %.300q, %v", data, err)
	}
	if exported := strconv.Itoa(len(rows) - 1); exported != count {
		t.Errorf("home counts %s failures, the export has %s", count, exported)
	}
	id, status := slices.Index(rows[0], "id"), slices.Index(rows[0], "status")
	if id < 0 {
		t.Fatalf("the export has no ids: %q", rows[0])
	}
	if status < 0 {
		t.Fatalf("the export has no statuses: %q", rows[0])
	}
	for _, row := range rows[1:] {
		if row[status] != "failed" && row[status] != "undelivered" {
			t.Errorf("the export of failures has a message that is %s", row[status])
		}
	}
	if !slices.ContainsFunc(rows, func(row []string) bool { return row[id] == failed.Sid }) {
		t.Errorf("the export lacks %s: %.300q", failed.Sid, data)
	}
	// The search for what nobody has handled is saved and watched.
	b.Follow(chromedp.Click(chromedp.CSS(".brand")))
	b.Follow(chromedp.Click(chromedp.CSS(`main a[href*="handled%3Ano"][href*="messages"]`)))
	shot("left")
	if browser.Eval[bool](b, `document.documentElement.innerHTML.includes("`+failed.Sid+`")`) {
		t.Error("what is handled is among what is not")
	}
	b.Do(chromedp.Click(chromedp.CSS(`button[popovertarget=save]`)), chromedp.WaitVisible(chromedp.CSS("#save-name")), chromedp.KeyEvent("to do"))
	b.Follow(chromedp.Click(chromedp.CSS(`#save .primary`)))
	b.Follow(chromedp.Click(chromedp.CSS(`.shelf a[href^="/-/watches/new"]`)))
	for channel, signed := range map[string]bool{"webhook": true, "slack": false} {
		b.Do(chromedp.SetValue(chromedp.CSS("#channel"), channel))
		if asked := browser.Eval[bool](b, `document.querySelector("#secret").checkVisibility()`); asked != signed {
			t.Errorf("a secret is asked for of %s: %v", channel, asked)
		}
	}
	b.Do(chromedp.SetValue(chromedp.CSS("#channel"), "slack"), chromedp.SendKeys(chromedp.CSS("#to"), "https://hooks.example.com/x"))
	shot("watch")
	b.Follow(chromedp.Click(chromedp.CSS(`main form .primary`)))
	shot("watches")
	says("the watches", "to do")
}

// failedMessage returns a message to a number that failed in the last days.
func failedMessage(t *testing.T, web string) (found struct{ Sid, From, To, Status string }) {
	t.Helper()
	rig.Await(t, func() string {
		answer := rig.Get(t, rig.Account+":"+rig.DemoToken, web+"/twilio/messages.json?PageSize=200")
		var list struct {
			Messages []struct{ Sid, From, To, Status string }
		}
		if err := json.Unmarshal(answer.Body, &list); err != nil {
			return err.Error()
		}
		at := slices.IndexFunc(list.Messages, func(m struct{ Sid, From, To, Status string }) bool {
			return (m.Status == "failed" || m.Status == "undelivered") && strings.HasPrefix(m.To, "+") && strings.HasPrefix(m.From, "+")
		})
		if at < 0 {
			return "no message failed"
		}
		found = list.Messages[at]
		return ""
	})
	return found
}
