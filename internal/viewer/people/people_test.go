// People: the pages of sign-in and of one's own sessions.

package people_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/callers"
	"understudy/internal/signin"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

const (
	password = "correct horse battery"
	right    = "name=anna&password=correct+horse+battery"
)

// openToPeople starts a viewer in which anna signs in, of the role support.
func openToPeople(t *testing.T) (*viewertest.Fixture, *signin.People, *viewertest.AuditLog) {
	t.Helper()
	now := func() time.Time { return viewertest.Noon }
	path := filepath.Join(t.TempDir(), "users")
	viewertest.Must(t, signin.UpdateFile(path, func(u *signin.Users) error { return u.Add("anna", "support", password) }))
	users, err := signin.ReadUsers(path)
	viewertest.Must(t, err)
	sessions := signin.NewSessions(now)
	viewertest.Must(t, sessions.Load(t.Context(), storetest.Open(t, store.Options{}).KV))
	log := &viewertest.AuditLog{}
	people := &signin.People{Sessions: sessions, Users: users, Guesses: callers.NewGuesses([32]byte{1}, now), Audit: log, Secure: true}
	h := viewertest.Open(t, func(o *page.Options) {
		o.People, o.Audit = people, log
		o.Callers, err = callers.New(callers.Options{Sources: o.Sources, Now: now, People: people,
			Credentials: []callers.Credential{viewertest.Credential("everything", viewertest.All.Token, understudy.RoleAll)}})
		viewertest.Must(t, err)
	})
	return h, people, log
}

// keep returns a browser with the cookies of an answer.
func keep(head http.Header) viewertest.Browser {
	var all []string
	for _, line := range head["Set-Cookie"] {
		cookie, _, _ := strings.Cut(line, ";")
		all = append(all, cookie)
	}
	return viewertest.Browser{}.WithCookie(strings.Join(all, "; "))
}

func TestWhoSignsInIsLedBackAndListed(t *testing.T) {
	h, _, log := openToPeople(t)
	stranger := viewertest.Browser{}
	form := h.Page("/-/sign-in?back=/twilio/calls", stranger)
	viewertest.CheckHTML(t, "the form", form)
	if !strings.Contains(form, `name="back" value="/twilio/calls"`) {
		t.Error("the form does not lead back")
	}
	for _, wrong := range []string{"name=anna&password=wrong", "name=nobody&password=" + password} {
		status, body, head := h.Do("POST", "/-/sign-in", wrong, stranger)
		if status != http.StatusForbidden || !strings.Contains(body, "Wrong name or password") {
			t.Errorf("%s: %d %.300s", wrong, status, body)
		}
		if head.Get("Set-Cookie") != "" {
			t.Errorf("%s: a session begins: %s", wrong, head.Get("Set-Cookie"))
		}
	}
	refused := log.Entries()
	if len(refused) != 2 {
		t.Fatalf("listed %+v", refused)
	}
	if refused[0].Caller.Name != "anna" || len(refused[0].Values) != 0 {
		t.Errorf("a wrong password is listed as %+v", refused[0])
	}
	if refused[1].Caller.Name != "" || !slices.Equal(refused[1].Values, []string{"nobody"}) { // what no user is called may be a password
		t.Errorf("an unknown name is listed as %+v", refused[1])
	}
	status, _, head := h.Do("POST", "/-/sign-in", right+"&back=//evil.example", stranger)
	if status != http.StatusSeeOther || head.Get("Location") != "/" {
		t.Fatalf("the right password: %d to %s", status, head.Get("Location"))
	}
	anna := keep(head)
	if last := log.Last(); last.What != "sign-in" || last.Caller.Name != "anna" {
		t.Errorf("listed %+v", last)
	}
	status, _, head = h.Get("/-/sign-in?back=/twilio/calls", anna)
	if status != http.StatusSeeOther || head.Get("Location") != "/twilio/calls" {
		t.Errorf("who is signed in: %d to %s", status, head.Get("Location"))
	}
	if home := h.Page("/", anna); !strings.Contains(home, "anna") || !strings.Contains(home, "/-/sessions") {
		t.Error("the home page does not say who is signed in")
	}
}

func TestSessionsEndOneByOne(t *testing.T) {
	h, people, log := openToPeople(t)
	_, _, head := h.Do("POST", "/-/sign-in", right, viewertest.Browser{})
	anna := keep(head)
	with := people.Sessions.PersonSessions("anna")[0].SignInID
	for _, name := range []string{"anna", "ben"} {
		_, err := people.Sessions.Begin(t.Context(), signin.Session{Name: name, SignInID: with,
			Agent: "curl/8.8.0 of " + name, Address: "192.0.2.7"})
		viewertest.Must(t, err)
	}
	shown := h.Page("/-/sessions", anna)
	viewertest.CheckHTML(t, "sessions", shown)
	if n := strings.Count(shown, `class="card job"`); n != 2 {
		t.Errorf("%d sessions", n)
	}
	if n := strings.Count(shown, "this browser"); n != 1 {
		t.Errorf("%d sessions are of this browser", n)
	}
	if strings.Contains(shown, "of ben") {
		t.Error("a session of ben is shown to anna")
	}
	button := regexp.MustCompile(`action="(/-/sessions/[^"]+/end)"><button aria-label="End the session of curl from 192.0.2.7"`)
	end := button.FindStringSubmatch(shown)
	if end == nil {
		t.Fatal("the other session cannot be ended")
	}
	if status, _, head := h.Do("POST", end[1], "a=b", anna); status != http.StatusSeeOther || head.Get("Location") != "/-/sessions" {
		t.Errorf("the end of another session: %d to %s", status, head.Get("Location"))
	}
	if last := log.Last(); last.What != "session end" || last.Caller.Name != "anna" {
		t.Errorf("listed %+v", last)
	}
	if shown := h.Page("/-/sessions", anna); strings.Contains(shown, "curl") {
		t.Error("the session that ended is shown")
	}
	h.Do("POST", "/-/sessions/"+people.Sessions.PersonSessions("ben")[0].ID+"/end", "a=b", anna)
	if len(people.Sessions.PersonSessions("ben")) != 1 {
		t.Error("anna ended a session of ben")
	}
	if status, _, head := h.Do("POST", "/-/sign-out", "a=b", anna); status != http.StatusSeeOther || head.Get("Location") != "/-/sign-in" {
		t.Errorf("sign-out: %d to %s", status, head.Get("Location"))
	}
	if len(people.Sessions.PersonSessions("anna")) != 0 || log.Last().What != "sign-out" {
		t.Errorf("after sign-out there are %d sessions; listed is %+v", len(people.Sessions.PersonSessions("anna")), log.Last())
	}
	if status, body, _ := h.Get("/-/sessions", viewertest.All); status != http.StatusNotFound || !strings.Contains(body, "did not sign in") {
		t.Errorf("sessions of a program: %d", status)
	}
}

// usersFile is the file of users of the people, which take over its changes at once.
type usersFile struct {
	path   string
	people *signin.People
}

func (f *usersFile) Change(ctx context.Context, change func(*signin.Users) error) error {
	if err := signin.UpdateFile(f.path, change); err != nil {
		return err
	}
	var err error
	if f.people.Users, err = signin.ReadUsers(f.path); err != nil {
		return err
	}
	return f.people.EndGone(ctx)
}

func (f *usersFile) CheckUser(_, role string) error {
	if role != "support" && role != understudy.RoleAll {
		return fmt.Errorf("%w: there is no role %s", understudy.ErrInvalid, role)
	}
	return nil
}

// An administrator invites ben, who chooses a password, changes it, gets another role, and is removed.
func TestUsersAreInvitedChangedAndRemoved(t *testing.T) {
	h, people, log := openToPeople(t)
	if shown := h.Page("/-/administration/users", viewertest.All); strings.Contains(shown, "<form class=\"fields\"") {
		t.Error("there is a form, but the file cannot be changed here")
	}
	file := &usersFile{filepath.Join(t.TempDir(), "users"), people}
	viewertest.Must(t, file.Change(t.Context(), func(u *signin.Users) error { return u.Add("anna", "support", password) }))
	people.File = file
	post := func(path, form string, as viewertest.Browser, want int, says string) (body string, head http.Header) {
		t.Helper()
		status, body, head := h.Do("POST", path, form, as)
		if status != want || !strings.Contains(body+head.Get("Location"), says) {
			t.Fatalf("%s %s: %d %s, not %d %s", path, form, status, body, want, says)
		}
		return body, head
	}
	const users = "/-/administration/users"
	_, head := post("/-/sign-in", right, viewertest.Browser{}, http.StatusSeeOther, "/")
	anna := keep(head)
	for _, path := range []string{users, users + "/ben/role", users + "/ben/remove", users + "/ben/withdraw"} {
		post(path, "name=ben&role=all&sure=yes", anna, http.StatusForbidden, "Only the role all can manage users")
	}
	post(users, "name=ben&role=owner", viewertest.All, http.StatusBadRequest, "There is no role owner")
	shown, _ := post(users, "name=ben&role=support", viewertest.All, http.StatusOK, "Copy the link now")
	viewertest.CheckHTML(t, "users", shown)
	if last := log.Last(); last.What != "users invite ben" {
		t.Errorf("listed %+v", last)
	}
	link := regexp.MustCompile(`data-copy="http://[^/"]+(/-/invitation\?token=([^"]+))"`).FindStringSubmatch(shown)
	if link == nil {
		t.Fatal("there is no link")
	}
	if again := h.Page(users, viewertest.All); strings.Contains(again, link[2]) || !strings.Contains(again, "invited by everything") {
		t.Error("the link is shown again, or the invitation is not listed")
	}
	stranger := viewertest.Browser{}
	viewertest.CheckHTML(t, "invitation", h.Page(link[1], stranger))
	const chosen, next = "battery staple one", "battery+staple+two"
	post("/-/invitation", "token="+link[2]+"&password=short", stranger, http.StatusBadRequest, "at least 15")
	_, head = post("/-/invitation", "token="+link[2]+"&password="+url.QueryEscape(chosen), stranger, http.StatusSeeOther, "/")
	ben := keep(head)
	if status, _, _ := h.Get(link[1], stranger); status != http.StatusNotFound {
		t.Errorf("the link after its use: %d", status)
	}
	const own = "/-/sessions/password"
	post(own, "current=guess&password="+next, ben, http.StatusForbidden, "The current password is wrong")
	if last := log.Last(); last.What != "password change refused" || last.Caller.Name != "ben" {
		t.Errorf("listed %+v", last)
	}
	post(own, "current="+url.QueryEscape(chosen)+"&password=short", ben, http.StatusBadRequest, "at least 15")
	_, head = post(own, "current="+url.QueryEscape(chosen)+"&password="+next, ben, http.StatusSeeOther, "/-/sessions")
	if status, _, _ := h.Get("/-/sessions", ben); status == http.StatusOK {
		t.Error("the session before the change is open")
	}
	ben = keep(head)
	isChange := func(e understudy.AuditEntry) bool { return e.What == "password change" && e.Caller.Name == "ben" }
	if all := log.Entries(); !slices.ContainsFunc(all, isChange) {
		t.Errorf("listed %+v", all)
	}
	viewertest.CheckHTML(t, "sessions", h.Page("/-/sessions", ben))
	post(users+"/ben/role", "role=all", viewertest.All, http.StatusSeeOther, users)
	post(users+"/ben/role", "role=support", ben, http.StatusBadRequest, "You can&#39;t change yourself")
	post(users+"/none/role", "role=all", viewertest.All, http.StatusNotFound, "There is no such user")
	post(users+"/ben/remove", "a=b", viewertest.All, http.StatusBadRequest, "Tick the box")
	post(users+"/ben/remove", "sure=yes", viewertest.All, http.StatusSeeOther, users)
	if status, _, _ := h.Get("/-/sessions", ben); status == http.StatusOK || people.Users.Has("ben") {
		t.Error("ben is not removed")
	}
	post(users, "name=carla&role=support", viewertest.All, http.StatusOK, "Copy the link now")
	post(users+"/carla/withdraw", "a=b", viewertest.All, http.StatusSeeOther, users)
	if shown := h.Page(users, viewertest.All); strings.Contains(shown, "carla") {
		t.Error("the invitation is not withdrawn")
	}
}

func TestNobodySignsInWhereThereAreNoPeople(t *testing.T) {
	h := viewertest.Open(t)
	for _, ask := range []string{"GET /-/sign-in", "POST /-/sign-in", "GET /-/sign-in/provider", "GET /-/sign-in/callback", "POST /-/sign-out",
		"GET /-/sessions", "POST /-/sessions/x/end"} {
		method, path, _ := strings.Cut(ask, " ")
		if status, body, _ := h.Do(method, path, "", viewertest.All); status != http.StatusNotFound || !strings.Contains(body, "viewer.sign_in") {
			t.Errorf("%s: %d", ask, status)
		}
	}
}

// The form is served only where its password would be accepted. Elsewhere the page says why there is none.
func TestFormIsServedOnlyWherePasswordsAreAccepted(t *testing.T) {
	h, people, _ := openToPeople(t)
	people.Secure = false
	for _, c := range []struct {
		from     string
		tls      bool
		accepted bool
	}{{"192.0.2.1:5000", false, false}, {"192.0.2.1:5000", true, true}, {"127.0.0.1:5000", false, true}} {
		ask := func(method, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, page.SignInPath, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if r.RemoteAddr = c.from; c.tls {
				r.TLS = &tls.ConnectionState{}
			}
			w := httptest.NewRecorder()
			h.Viewer.ServeHTTP(w, r)
			return w
		}
		form, posted := ask(http.MethodGet, ""), ask(http.MethodPost, right)
		if has := strings.Contains(form.Body.String(), `type="password"`); has != c.accepted {
			t.Errorf("%v: the page has a form: %v", c, has)
		}
		if says := strings.Contains(form.Body.String(), "only over TLS"); says == c.accepted {
			t.Errorf("%v: the page says why there is no form: %v", c, says)
		}
		if form.Code == http.StatusForbidden == c.accepted {
			t.Errorf("%v: the page is answered %d", c, form.Code)
		}
		if posted.Code == http.StatusForbidden == c.accepted {
			t.Errorf("%v: the password is answered %d", c, posted.Code)
		}
	}
}
