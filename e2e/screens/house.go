// House: a server with people, watches, webhooks and credentials, which a demo has not.

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/binary"
	"understudy/internal/signin"
)

// password is that of the user anna.
const password = "four odd words of anna"

// settings are the house's; %q is the simulated API. Nothing listens on port 9, so the
// webhook fails.
const settings = `data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: users}
sources:
  twilio: {spec: twilio, upstream: %q, user: AC00000000000000000000000000000001, secret: "file:token", listen: "127.0.0.1:0"}
roles:
  support:
    twilio: {"*": see, phone: last4, body: hide}
watches: {hosts: [hooks.example.com]}
webhooks:
  - {name: crm, url: "http://127.0.0.1:9/", secret: "cmd:echo whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTw==", role: support, kinds: [calls], allow_private: true}
`

// house takes the pages of people, in the order in which anna comes by them.
func (c *camera) house(program, dir, api string) error {
	err := signin.UpdateFile(filepath.Join(dir, "users"), func(u *signin.Users) error { return u.Add("anna", "all", password) })
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"understudy.yml": fmt.Sprintf(settings, api), "token": "slowapitoken"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	house, err := binary.Start(program, dir, "serve")
	if err != nil {
		return err
	}
	defer house.Kill()
	demo := c.viewer
	defer func() { c.viewer = demo }()
	c.viewer = house.URL("viewer")
	for _, step := range []struct {
		name, path string // one page, or
		do         []chromedp.Action[chromedp.Void]
	}{
		{name: "sign-in", path: "/"},
		{do: fill("#name", "anna", "#password", "a guess"), name: "sign-in-wrong"},
		{do: fill("#name", "anna", "#password", password), name: "home-new"},
		{name: "watches-none", path: "/-/watches"},
		{name: "watch-early", path: "/-/watches/new"},
		{path: "/search?q=status:failed"},
		{do: append(open(".save"), fill(".save [name=name]", "late parcels")...), name: "saved"},
		{name: "watch-form", path: "/-/watches/new"},
		{do: fill("#channel", "slack", "#to", "https://else.example.org/x"), name: "watch-wrong"},
		{do: fill("#channel", "slack", "#to", "https://hooks.example.com/x"), name: "watch-made"},
		{name: "watches-own", path: "/-/watches"},
		{name: "connect-new", path: "/-/connect"},
		{do: fill(".fields #name", "reports"), name: "credential-new"},
		{name: "connect-made", path: "/-/connect"},
		{name: "credential-made", path: "/-/connect/reports"},
		{name: "sessions", path: "/-/sessions"},
		{name: "sessions-all", path: "/-/administration/sessions"},
		{name: "users", path: "/-/administration/users"},
		{do: fill(".fields #name", "dora"), name: "user-invited"},
		{name: "users-invited", path: "/-/administration/users"},
		{name: "administration-people", path: "/-/administration"},
		{path: "/-/roles/support"},
		{do: []chromedp.Action[chromedp.Void]{chromedp.Click(chromedp.CSS(".acts .primary"))}, name: "view-as"},
	} {
		if step.path != "" {
			if err := chromedp.Do(c.tab, chromedp.Navigate(c.viewer+step.path), chromedp.WaitReady(chromedp.CSS("footer"))); err != nil {
				return fmt.Errorf("%s: %w", step.path, err)
			}
		}
		if len(step.do) > 0 {
			if _, err := chromedp.RunResponse(c.tab, step.do...); err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
		}
		if step.name != "" {
			if err := c.here(step.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// open shows a popover.
func open(selector string) []chromedp.Action[chromedp.Void] {
	return []chromedp.Action[chromedp.Void]{chromedp.Evaluate[chromedp.Void](`document.querySelector("` + selector + `").showPopover()`)}
}

// fill types values into fields, and sends the last one's form.
func fill(pairs ...string) (all []chromedp.Action[chromedp.Void]) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, chromedp.SetValue(chromedp.CSS(pairs[i]), pairs[i+1]), chromedp.Focus(chromedp.CSS(pairs[i])))
	}
	return append(all, chromedp.KeyEvent(kb.Enter))
}
