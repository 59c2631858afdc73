// Mail: watches tell a real mail server, aiosmtpd, over STARTTLS, and go by its answers.

package operation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const (
	mailUser   = "understudy"
	mailSecret = "secretofthemailserver"
)

// mailed is what the mail server prints.
type mailed struct {
	Port                            int
	Refused                         string
	Answer, TLS, User, Sender, Text string
	Recipients                      []string
	Headers                         [][2]string
}

// headers are those of a name.
func (m *mailed) headers(name string) (all []string) {
	for _, h := range m.Headers {
		if strings.EqualFold(h[0], name) {
			all = append(all, h[1])
		}
	}
	return all
}

// startMail runs the mail server until the test ends. What it prints comes by the channel.
func startMail(t *testing.T, certificate, key string) (port int, came <-chan mailed) {
	t.Helper()
	python, err := filepath.Abs("../sdks/python/.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "../sdks/python/mail.py", certificate, key, mailUser, mailSecret)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (is it installed? `make setup`)", err)
	}
	all := make(chan mailed, 100)
	go func() {
		defer close(all)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var m mailed
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Errorf("the mail server prints %q: %v", lines.Text(), err)
			}
			all <- m
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range all { // until it has ended
		}
		if t.Failed() {
			t.Logf("the mail server wrote:\n%s", complaints.String())
		}
	})
	first, ok := <-all
	if !ok || first.Port == 0 {
		t.Fatalf("the mail server did not start (is it installed? `make setup`)\n%s", complaints.String())
	}
	return first.Port, all
}

// startMailer runs a server whose watches tell by a mail server. trusted is the file of
// the certificates it trusts.
func startMailer(t *testing.T, trusted string, port int) *binary.Server {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"mail.secret": mailSecret, "twilio.token": rig.APIToken, "demo.secret": rig.DemoToken,
		"understudy.yml": fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
sources:
  twilio: {spec: twilio, upstream: %q, user: %s, secret: "file:twilio.token", listen: "127.0.0.1:0", polls: []}
credentials:
  - {name: demo, source: twilio, user: %[2]s, secret: "file:demo.secret", role: all}
watches: {mail: [example.com], every: 1ms}
mail: {server: "127.0.0.1:%d", from: "Understudy <understudy@example.com>", user: %s, secret: "file:mail.secret", tls: starttls}
`, rig.StartAPI(t, "--latency", "1ms", "--records", "25").URL("slowapi"), rig.Account, port, mailUser)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := binary.Start("/usr/bin/env", dir, "SSL_CERT_FILE="+trusted, "SSL_CERT_DIR="+dir, rig.Program, "serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("understudy wrote:\n%s", rig.Tail(s.Log(), 6000))
		}
	})
	return s
}

// submit posts a form of the viewer and returns where it leads.
func submit(t *testing.T, viewer, path string, form url.Values) string {
	t.Helper()
	answer, err := rig.Ask("POST", "", viewer+path, form.Encode())
	if err != nil || answer.Status != 303 {
		t.Fatalf("%s: %v, %d: %.500s", path, err, answer.Status, answer.Body)
	}
	return answer.Header.Get("Location")
}

var tags = regexp.MustCompile(`<[^>]*>`)

// shows waits until a page of the viewer has a text, and returns the text of all of it.
func shows(t *testing.T, address, want string) string {
	t.Helper()
	var text string
	rig.Await(t, func() string {
		text = html.UnescapeString(tags.ReplaceAllString(string(rig.Get(t, "", address).Body), " "))
		if !strings.Contains(text, want) {
			return address + " does not show " + want + ": " + text
		}
		return ""
	})
	return text
}

func TestMailByARealServer(t *testing.T) {
	t.Parallel()
	certificate, key := rig.WriteCertificate(t, t.TempDir())
	port, came := startMail(t, certificate, key)
	house := startMailer(t, certificate, port)
	viewer := house.URL("viewer")
	const name = "Alle Nachrichten, täglich"
	submit(t, viewer, "/search/save", url.Values{"name": {name}, "q": {"kind:messages"}})
	pages := map[string]string{}
	for _, to := range []string{"gone@example.com", "desk@example.com"} {
		pages[to] = viewer + submit(t, viewer, "/-/watches/new", url.Values{"search": {name}, "channel": {"mail"}, "to": {to}})
	}
	list := house.URL("twilio") + "/2010-04-01/Accounts/" + rig.Account + "/Messages.json?PageSize=1000"
	var rows struct {
		Messages []struct{ SID string }
		Next     string `json:"next_page_uri"`
	}
	answer := rig.Get(t, rig.Account+":"+rig.DemoToken, list)
	err := json.Unmarshal(answer.Body, &rows)
	checktest.MustNoError(t, err, "the list")
	checktest.MustTrue(t, len(rows.Messages) >= 20, "the list: len(rows.Messages) is %v, want >= 20",
		len(rows.Messages))
	checktest.MustEqual(t, rows.Next, "", "the list: rows.Next")

	// The server has no such recipient: its words are in the log, and the watch stops.
	text := shows(t, pages["gone@example.com"], "there is no desk called gone")
	if !strings.Contains(text, "550") || !strings.Contains(text, "The receiver refused a message") {
		t.Errorf("the page of the refused says %s", text)
	}
	// It answers 451: the same message comes again, under the same id.
	text = shows(t, pages["desk@example.com"], "2 tries")
	if !strings.Contains(text, fmt.Sprintf("%d matches", len(rows.Messages))) || !strings.Contains(text, "kept") {
		t.Errorf("the page of the other says %s", text)
	}
	var refused int
	var messages []mailed
	for range 3 {
		select {
		case m := <-came:
			if m.Refused != "" {
				refused++
			} else {
				messages = append(messages, m)
			}
		case <-time.After(rig.Patience):
			t.Fatalf("only %d refused and %v came", refused, messages)
		}
	}
	select {
	case m := <-came:
		t.Errorf("and then %+v", m)
	default:
	}
	checktest.MustEqual(t, refused, 1, "refused")
	checktest.MustEqual(t, len(messages), 2, "len(messages)")
	checktest.MustTrue(t, strings.HasPrefix(messages[0].Answer, "451"), "messages[0].Answer is %q",
		messages[0].Answer)
	checktest.MustTrue(t, strings.HasPrefix(messages[1].Answer, "250"), "messages[1].Answer is %q",
		messages[1].Answer)
	a, b := &messages[0], &messages[1]
	id := b.headers("Message-ID")
	checktest.MustEqual(t, len(id), 1, "the ids are: len(id)")
	checktest.True(t, slices.Equal(a.headers("Message-ID"), id),
		`the ids are: slices.Equal(a.headers("Message-ID"), id) is false`)
	checktest.True(t, strings.HasSuffix(id[0], "@example.com>"), "the ids are: id[0] is %q", id[0])
	checktest.True(t, strings.HasPrefix(b.TLS, "TLSv1."), "the message came as: b.TLS is %q", b.TLS)
	checktest.Equal(t, b.User, mailUser, "the message came as: b.User")
	checktest.Equal(t, b.Sender, "understudy@example.com", "the message came as: b.Sender")
	checktest.Equal(t, a.Text, b.Text, "the message came as: a.Text")
	checktest.True(t, slices.Equal(b.Recipients, []string{"desk@example.com"}),
		"the message came as: b.Recipients is %v", b.Recipients)
	for header, want := range map[string]string{"From": "Understudy <understudy@example.com>", "To": "desk@example.com",
		"Subject": name, "Auto-Submitted": "auto-generated", "Date": " "} {
		if all := b.headers(header); len(all) != 1 || !strings.Contains(all[0], want) {
			t.Errorf("%s: %q, want %q", header, all, want)
		}
	}
	if n := strings.Count(b.Text, viewer+"/twilio/messages/"); n != 20 {
		t.Errorf("it leads to %d records, and lists 20: %s", n, b.Text)
	}
	// Each try was listed before it went out.
	if trail := shows(t, viewer+"/-/audit?action=export", "to mail"); strings.Count(trail, "to mail") != 3 {
		t.Errorf("the audit log has %s", trail)
	}
}

// A server whose certificate is not trusted gets no secret and no message.
func TestMailToAStranger(t *testing.T) {
	t.Parallel()
	certificate, key := rig.WriteCertificate(t, t.TempDir())
	trusted, _ := rig.WriteCertificate(t, t.TempDir())
	port, came := startMail(t, certificate, key)
	house := startMailer(t, trusted, port)
	viewer := house.URL("viewer")
	submit(t, viewer, "/search/save", url.Values{"name": {"all"}, "q": {"kind:messages"}})
	at := submit(t, viewer, "/-/watches/new", url.Values{"search": {"all"}, "channel": {"mail"}, "to": {"desk@example.com"}})
	submit(t, viewer, at+"/test", url.Values{})
	shows(t, viewer+at, "certificate signed by unknown authority")
	select {
	case m := <-came:
		t.Errorf("a stranger got %+v", m)
	default:
	}
}
