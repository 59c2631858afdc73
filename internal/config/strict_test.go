// Tests of the settings file: strictness, values, and its document.

package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/spec/auth"
	"understudy/upstream"
)

func noEnv(string) (string, bool) { return "", false }

func TestSettingsSayWhereTheyAreWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown":        {"data: x\nviewr: {}\n", `line 2: unknown setting "viewr"; did you mean "viewer"?`},
		"a control byte": {"data: x\nviewer: \x08\n", "line 2: a byte in this line is not valid text"},
		"no UTF-8":       {"data: x\n# \xff\n", "line 2: a byte in this line is not valid text"},
		"a NUL":          {"data: x\n\n\x00", "line 3: a byte in this line is not valid text"},
		"an open brace":  {"data: x\nviewer: {\n", "line 3: did not find"},
		"nested":         {"sources:\n  a:\n    spec: x\n    upstrem: y\n", `line 4: unknown setting "upstrem"; did you mean "upstream"?`},
		"in a list":      {"credentials:\n  - {name: a, sorce: b}\n", `line 2: unknown setting "sorce"; did you mean "source"?`},
		"twice":          {"data: x\ndata: y\n", `line 2: "data" appears twice, first in line 1`},
		"duration":       {"mirror: {newest: 5}\n", `"5" is not a duration`},
		"negative":       {"mirror: {newest: -5s}\n", `not a duration`},
		"size":           {"mirror: {memory: 64 potatoes}\n", `"64 potatoes" is not a size`},
		"date": {"sources: {a: {spec: s}}\ncredentials: [{name: a, source: a, secret: \"file:x\", role: all, expires: tomorrow}]\n",
			`"tomorrow" is not a date`},
		"block":           {"viewer: 5\n", `line 1: write a block of settings`},
		"list":            {"credentials: {}\n", `write a list`},
		"address":         {"viewer: {listen: nowhere}\n", `viewer.listen: "nowhere": write HOST:PORT`},
		"open metrics":    {"metrics: {listen: \"0.0.0.0:9114\"}\n", `metrics.listen: 0.0.0.0:9114 is open to the network`},
		"open zmq":        {"feed: {zmq: \"0.0.0.0:5556\"}\n", `feed.zmq: 0.0.0.0:5556 is open to the network, and sockets of ZeroMQ`},
		"zmq nowhere":     {"feed: {zmq: \"tcp://127.0.0.1:5556\"}\n", `feed.zmq: "tcp://127.0.0.1:5556": write HOST:PORT`},
		"metrics nowhere": {"metrics: {listen: nowhere}\n", `metrics.listen: "nowhere": write HOST:PORT`},
		"metrics, a source": {"sources: {metrics: {spec: s}}\nmetrics: {listen: \"127.0.0.1:9114\"}\n",
			`a source is called metrics, as this port is`},
		"metrics and role": {"credentials: [{name: m, secret: \"file:x\", role: all, allow: metrics}]\n",
			`a credential for metrics may do nothing else`},
		"metrics and jobs": {"credentials: [{name: m, secret: \"file:x\", allow: [metrics, jobs]}]\n", `may do nothing else`},
		"open address":     {"viewer: {listen: \":4114\"}\n", `has no host; write 127.0.0.1, or 0.0.0.0`},
		"url":              {"sources: {a: {spec: s, upstream: \"ftp://x\"}}\n", `sources.a.upstream: it is not a plain URL`},
		"secret in url":    {"sources: {a: {spec: s, upstream: \"http://u:hunter2@x\"}}\n", `without credentials`},
		"two specs":        {"sources: {a: {spec: s, generic: \"http://x\"}}\n", `sources.a.spec: a generic source has none`},
		"generic":          {"sources: {a: {generic: \"x:80\"}}\n", `sources.a.generic: it is not a plain URL`},
		"polls of it":      {"sources: {a: {generic: \"http://x\", polls: [calls]}}\n", `sources.a.polls: a generic source has none`},
		"ages": {"sources: {a: {spec: s, freshness: upstrem}}\n",
			`sources.a.freshness: "upstrem" is none of own and upstream; did you mean "upstream"?`},
		"ages of it":   {"sources: {a: {generic: \"http://x\", freshness: upstream}}\n", `sources.a.freshness: a generic source has none`},
		"open":         {"sources: {a: {spec: s, loopback: true}}\n", `sources.a.loopback: it is for generic sources`},
		"empty source": {"sources: {a: }\n", `sources.a.spec: the source is empty`},
		"source name":  {"sources: {number: {spec: s}}\n", `cannot name a source`},
		"unknown source": {"sources: {web: {spec: s}}\ncredentials: [{name: a, source: wep, secret: \"file:x\", role: all}]\n",
			`source: "wep" is not configured; did you mean "web"?`},
		"role": {"sources: {a: {spec: s}}\ncredentials: [{name: a, source: a, secret: \"file:x\", role: al}]\n",
			`role: "al" is not a role; did you mean "all"?`},
		"unknown dsn": {"store: {dsn: 'mysql://u:p@db/x'}\n",
			`store.dsn: mysql databases are not supported; give the path of an SQLite file, or a PostgreSQL database as ` +
				`postgres://user@host/database`},
		"dsn in key words": {"store: {dsn: 'host=db password=p'}\n",
			`store.dsn: a PostgreSQL database is written as postgres://user@host/database`},
		"builtin role": {"roles: {all: {}}\n", `that role is built in`},
		"allow": {"sources: {a: {spec: s}}\ncredentials: [{name: a, source: a, secret: \"file:x\", role: all, allow: [\"/x\"]}]\n",
			`write a method and a path`},
		"sign-in":         {"viewer: {sign_in: magic}\n", `"magic" is not known`},
		"sign-in, near":   {"viewer: {sign_in: user}\n", `write none, users, header, oidc; did you mean "users"?`},
		"behind a proxy":  {"viewer: {sign_in: none, public_url: \"https://calls.example.com\"}\n", `a proxy is in front; write header`},
		"role of nobody":  {"viewer: {sign_in: users, role: all}\n", `has no effect while people sign in`},
		"users of nobody": {"viewer: {users: ./people}\n", `write viewer.sign_in: users`},
		"no header":       {"viewer: {sign_in: header}\n", `viewer.header.name: "" is not a header name`},
		"odd header":      {"viewer: {sign_in: header, header: {name: \"X User\"}}\n", `viewer.header.name: "X User" is not a header name`},
		"one header":      {"viewer: {sign_in: header, header: {name: X-User, roles: x-user}}\n", `name and roles are the same header`},
		"no proxy":        {"viewer: {sign_in: header, header: {name: X-User, roles: X-Roles}}\n", `list the addresses of the proxy`},
		"any proxy": {"viewer: {sign_in: header, header: {name: X-User, roles: X-Roles, from: [0.0.0.0/0]}}\n",
			`0.0.0.0/0 is every address`},
		"odd proxy": {"viewer: {sign_in: header, header: {name: X-User, roles: X-Roles, from: [proxy]}}\n",
			`"proxy" is not an address block`},
		"no issuer":   {"viewer: {sign_in: oidc}\n", `viewer.oidc.issuer: "": write the https address`},
		"open issuer": {"viewer: {sign_in: oidc, oidc: {issuer: \"http://login.example.com\"}}\n", `write the https address`},
		"no client":   {"viewer: {sign_in: oidc, oidc: {issuer: \"https://x.example\"}}\n", `viewer.oidc.client: empty`},
		"no secret":   {"viewer: {sign_in: oidc, oidc: {issuer: \"https://x.example\", client: us}}\n", `viewer.oidc.secret: empty`},
		"nobody's role": {"viewer: {sign_in: oidc, oidc: {issuer: \"https://x.example\", client: us, secret: \"file:x\"}}\n",
			`nobody has access; write roles by group, or domains`},
		"odd role": {"viewer: {sign_in: oidc, oidc: {issuer: \"https://x.example\", client: us, secret: \"file:x\", roles: {ops: al}}}\n",
			`viewer.oidc: ops: "al" is not a role; did you mean "all"?`},
		"odd roles": {"viewer: {sign_in: oidc, oidc: {roles: [ops]}}\n", `write NAME: ROLE`},
		"odd domain": {"viewer: {sign_in: oidc, oidc: {issuer: \"https://x.example\", client: us, secret: \"file:x\", " +
			"domains: {\"@x.org\": all}}}\n",
			`write a domain in small letters`},
		"lookup, no log": {"roles: {support: {twilio: {\"*\": see, phone: last4, do: [lookup]}}}\naudit: {off: true}\n",
			`support.twilio.do has lookup`},
		"lookup, not listed": {"roles: {support: {twilio: {\"*\": see, phone: last4, do: [lookup]}}}\naudit: {people: [export]}\n",
			`have the audit log list search for this role`},
		"odd receiver":      {"audit: {send: \"syslog+tcp://logs\"}\n", `it is not the address of a receiver; write syslog+tcp://HOST`},
		"receiver's secret": {"audit: {send_secret: \"file:x\"}\n", `audit.send_secret has no effect without audit.send`},
		"receiver's CA":     {"audit: {send_ca: \"file:x\"}\n", `audit.send_ca has no effect without audit.send`},
		"CA without TLS":    {"audit: {send: \"syslog+tcp://logs:601\", send_ca: \"file:x\"}\n", `audit.send_ca: it applies only to syslog+tls`},
		"no certificate":    {"tls: {cert: a.pem}\n", `write self, or {cert: FILE, key: FILE}, or {acme:`},
		"two certificates":  {"tls: {cert: a.pem, key: a.key, acme: {names: [a.example.com], agree: true}}\n", `tls: write self, or {cert`},
		"terms":             {"tls: {acme: {names: [a.example.com]}}\n", `tls.acme.agree: write agree: true if you accept the terms`},
		"no host":           {"tls: {acme: {agree: true}}\n", `tls.acme.names: []: write the hosts`},
		"wildcard":          {"tls: {acme: {names: [\"*.example.com\"], agree: true}}\n", `tls.acme.names: ["*.example.com"]: write the hosts`},
		"host with a port":  {"tls: {acme: {names: [\"a.example.com:443\"], agree: true}}\n", `without ports`},
		"no name":           {"tls: {acme: {names: [192.0.2.1], agree: true}}\n", `tls.acme.names: ["192.0.2.1"]: write the hosts`},
		"odd directory":     {"tls: {acme: {directory: \"http://a.example.com\", names: [a.b], agree: true}}\n", `write the https URL`},
		"odd acme":          {"tls: {acme: {name: a.example.com, agree: true}}\n", `name`},
		"acme, no secret": {"store: {dsn: \"postgres://u@db/u\"}\ntls: {acme: {names: [a.example.com], agree: true}}\n",
			`write nodes: {secret: file:PATH}`},
		"unused oidc":     {"viewer: {oidc: {client: us}}\n", `write viewer.sign_in: oidc`},
		"unused header":   {"viewer: {header: {name: X-User}}\n", `write viewer.sign_in: header`},
		"environment":     {"data: ${NOWHERE}\n", `line 1: environment variable NOWHERE is not set`},
		"no yaml":         {"data: [\n", `line`},
		"credential name": {"credentials: [{source: a}]\n", `every credential needs one`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text), noEnv)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestSettingsAreRead(t *testing.T) {
	env := func(name string) (string, bool) { return "/srv/" + strings.ToLower(name), name == "FOLDER" }
	c, err := Parse([]byte(`
data: ${FOLDER}
sources:
  web: {spec: ./web.yaml, user: "a$b", secret: "cmd:echo ${HOME}", rate: 2.5, polls: []}
credentials:
  - {name: reports, source: web, user: reports, secret: "file:x", role: support, max_stale: 0s, expires: 2027-01-01}
roles:
  support: {web: {"*": see, phone: last4}}
mirror: {memory: 25MiB, newest: 1m}
`), env)
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != "/srv/folder" {
		t.Errorf("data = %q", c.Data)
	}
	src := c.Sources["web"]
	checktest.Equal(t, src.User, "a$b", "source =: src.User")
	checktest.Equal(t, src.Secret, "cmd:echo ${HOME}", "source =: src.Secret")
	checktest.Equal(t, src.Rate, 2.5, "source =: src.Rate")
	checktest.MustTrue(t, src.Polls != nil, "source =: src.Polls is nil")
	checktest.Equal(t, len(src.Polls), 0, "source =: len(src.Polls)")
	cred := c.Credentials[0]
	checktest.MustTrue(t, cred.MaxStale != nil, "credential =: cred.MaxStale is nil")
	checktest.Equal(t, *cred.MaxStale, 0, "credential =: *cred.MaxStale")
	checktest.True(t, time.Time(cred.Expires).Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)),
		"credential =: time.Time(cred.Expires).Equal(time.Date(2027, 1, 1, 0, 0, 0,… is false")
	checktest.Equal(t, c.Mirror.Hot, 25<<20, "config =: c.Mirror.Hot")
	checktest.Equal(t, c.Mirror.Newest.Std(), time.Minute, "config =: c.Mirror.Newest.Std()")
	checktest.Equal(t, c.Viewer.Listen, "127.0.0.1:4114", "config =: c.Viewer.Listen")
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "17B": 17, "4kB": 4000, "4KiB": 4096, "64MiB": 64 << 20, "2GiB": 2 << 30,
		"1 GB": 1e9} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "99999999999TiB", "0x10"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"file:token": "hunter2", "file:" + filepath.Join(dir, "token"): "hunter2",
		"cmd:cat token": "hunter2", "cmd:printf ' a b '": " a b "} {
		s, err := ReadSecret(t.Context(), SecretRef(setting), dir)
		if err != nil || s.Reveal() != want {
			t.Errorf("readSecret(%q) = %v, %v", setting, s.Reveal() == want, err)
		}
	}
	for name, text := range map[string]string{
		"utf8mark": "\xef\xbb\xbfhunter2\r\n", "utf16le": "\xff\xfeh\x00u\x00n\x00t\x00e\x00r\x002\x00\r\x00\n\x00",
		"utf16be": "\xfe\xff\x00h\x00u\x00n\x00t\x00e\x00r\x002\x00\n",
		"two":     "hunter2\nhunter2\n", "nul": "hunter2hunter2\x00\x00", "latin1": "hunter2\xe9", "marked": "\xef\xbb\xbf\n",
		"cut": "\xff\xfeh\x00u",
		"pem": "-----BEGIN KEY-----\nhunter2\n-----END KEY-----\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"utf8mark", "utf16le", "utf16be"} {
		s, err := ReadSecret(t.Context(), SecretRef("file:"+name), dir)
		if err != nil || s.Reveal() != "hunter2" {
			t.Errorf("%s: %q, %v", name, s.Reveal(), err)
		}
	}
	if _, err := ReadSecret(t.Context(), "file:pem", dir); err != nil {
		t.Errorf("a key in PEM: %v", err)
	}
	for _, setting := range []string{"hunter2", "file:nowhere", "cmd:false", "cmd:true", "", "env:X", "file:two", "file:nul", "file:latin1",
		"file:marked", "file:cut"} {
		_, err := ReadSecret(t.Context(), SecretRef(setting), dir)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("readSecret(%q): %v", setting, err)
		}
	}
	if _, err := ReadSecret(t.Context(), "file:cut", dir); err == nil || !strings.Contains(err.Error(), "UTF-16 and is cut") {
		t.Errorf("UTF-16 of an odd length: %v", err)
	}
}

// What a request cannot carry, or nobody can see, is refused with a sentence that says so.
func TestSecretThatCannotTravelIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, style, want string }{
		"two marks":         {"\xef\xbb\xbf\xef\xbb\xbfhunter2", "basic", "an invisible character at byte 0"},
		"mark inside":       {"hun\ufeffter2", "basic", "an invisible character at byte 3"},
		"zero width":        {"hunter2\u200b", "basic", "an invisible character at byte 7"},
		"blank, bearer":     {"hunter2 ", "bearer", "a blank, which HTTP removes"},
		"blank, header":     {" hunter2", "header X-Key", "a blank, which HTTP removes"},
		"blank, two styles": {"hunter2 ", "basic + header X-Key", "a blank, which HTTP removes"},
		"blank, form":       {"hunter2 ", `header X-Key key="{secret}"`, ""},
		"blank, basic":      {"hunter2 ", "basic", ""},
		"blank, query":      {"hunter2 ", "query key", ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &Source{Secret: "file:secret"}
		_, err := s.ReadSecrets(t.Context(), &spec.Spec{Auth: auth.Auth{Style: c.style}}, FileSecrets(dir))
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for setting, want := range map[string]string{"cmd:": "names no command", "cmd: ": "names no command",
		"file:/dev/null": "name a regular file", "file:": "name a regular file"} {
		if _, err := ReadSecret(t.Context(), SecretRef(setting), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", setting, err)
		}
	}
}

// The example in the document is a working file.
func TestDocumentedExample(t *testing.T) {
	_, rest, ok := strings.Cut(readDocument(t), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/reference/settings.md has no example")
	}
	if _, err := Parse([]byte(example), noEnv); err != nil {
		t.Error(err)
	}
}

func FuzzSettings(f *testing.F) {
	demo, err := os.ReadFile("../../cmd/understudy/demo.yml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("data: x\nviewer: {listen: 127.0.0.1:0}\n"))
	f.Add(demo)
	f.Add([]byte("sources: {a: &a {spec: x}, b: *a}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("mirror: {memory: 1GiB}\nroles: {r: {s: {\"*\": see}}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4<<10 {
			return
		}
		c, err := Parse(data, noEnv)
		if err == nil && c == nil {
			t.Error("neither settings nor an error")
		}
	})
}

func TestMediaSettings(t *testing.T) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkMedia(&spec.Source{Spec: sp, MediaKinds: []string{"recordings", "media"}}); err != nil {
		t.Error(err)
	}
	err = checkMedia(&spec.Source{Spec: sp, MediaKinds: []string{"recording"}})
	if err == nil || !strings.Contains(err.Error(), `no contents of "recording"; did you mean "recordings"?`) {
		t.Errorf("%v", err)
	}
	c, err := Parse([]byte("sources: {web: {spec: s, media: [recordings], max_media: 2GiB}}\nstore: {media: 5GiB, media_file: 10MiB}\n"),
		noEnv)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Sources["web"]
	checktest.MustEqual(t, len(s.Media), 1, "len(s.Media)")
	checktest.Equal(t, s.MaxMedia, 2<<30, "s.MaxMedia")
	checktest.Equal(t, c.Store.Media, 5<<30, "c.Store.Media")
	checktest.Equal(t, c.Store.MediaFile, 10<<20, "c.Store.MediaFile")
}

// TestContentsSettings: a bucket needs a key and a secret, and the secret is read like others.
func TestContentsSettings(t *testing.T) {
	for text, want := range map[string]string{
		"store: {contents: s3://b/p, s3: {key: k, secret: \"file:s\", endpoint: \"http://127.0.0.1:9000\"}}": "",
		"store: {contents: /var/media}":                                         "a bucket is written s3://BUCKET",
		"store: {contents: s3://b}":                                             "the bucket needs a key and a secret",
		"store: {contents: s3://b, s3: {key: k, secret: x, endpoint: nine}}":    "store.s3.endpoint",
		"store: {contents: \"s3://k:v@b/p\", s3: {key: k, secret: \"file:s\"}}": "a bucket is written s3://BUCKET",
	} {
		c, err := Parse([]byte("sources: {web: {spec: s}}\n"+text+"\n"), nil)
		if want != "" {
			checktest.MustTrue(t, err != nil, "%s is accepted", text)
			checktest.Contains(t, err.Error(), want, "error of %s", text)
			continue
		}
		checktest.MustNoError(t, err, "parse %s", text)
		o, err := c.Store.ReadContents(t.Context(), "data", func(_ context.Context, ref SecretRef) (understudy.Secret, error) {
			return understudy.NewSecret("of " + string(ref)), nil
		})
		checktest.MustNoError(t, err, "ReadContents")
		checktest.Equal(t, o.S3.Secret.Reveal(), "of file:s", "secret")
		checktest.Lacks(t, fmt.Sprintf("%+v", o), "of file:s", "the options")
		checktest.Equal(t, len(NamedSecrets(c)), 1, "secrets that the settings name")
	}
}

// TestBackupSettings: a bucket needs the settings of its store.
func TestBackupSettings(t *testing.T) {
	for text, want := range map[string]string{
		"backup: {to: /backup, every: 1h, keep: 2, keep_for: 48h, keys: true}": "",
		"backup: {to: copies}": "",
		"store: {s3: {key: k, secret: \"file:s\"}}\nbackup: {to: s3://b/p}": "",
		"backup: {to: s3://b/p}": "backup.to: store.s3: the bucket needs a key",
		"store: {s3: {key: k, secret: \"file:s\"}}\nbackup: {to: s3:///p}": "a bucket is written s3://BUCKET",
		"backup: {to: /backup, every: 1s}":                                 "backup.every: 1s is too short",
		"backup: {to: /backup, keep: -1}":                                  "backup.keep",
	} {
		c, err := Parse([]byte("sources: {web: {spec: s}}\n"+text+"\n"), nil)
		if want != "" {
			checktest.MustTrue(t, err != nil, "%s is accepted", text)
			checktest.Contains(t, err.Error(), want, "error of %s", text)
			continue
		}
		checktest.MustNoError(t, err, "parse %s", text)
		checktest.True(t, c.Backup.Keep > 0 && c.Backup.Every > 0 && c.Backup.KeepFor > 0, "%s: %+v", text, c.Backup)
	}
}

// A file with every old name of a setting is read as one with the new names, and each has a warning.
func TestOldNamesOfSettingsStillWork(t *testing.T) {
	const old = `
sources:
  api: {spec: twilio, user: u, roots: [all], login: k, answers: records, ages: upstream, checks: 5}
mirror: {hot: 8MiB, hard: 30d, other: 7s, final: 2w}
search: {look: 70}
feed: {look: 5s}
limits: {flights: 71, behind: 72, hints: 73, express: 1MiB}
`
	c, err := Parse([]byte(old), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	s, now := c.Sources["api"], old
	for _, one := range table() {
		if word := one.name[strings.LastIndexByte(one.name, '.')+1:]; one.oldName != "" {
			now = strings.ReplaceAll(now, "{"+one.oldName+": ", "{"+word+": ")
			now = strings.ReplaceAll(now, " "+one.oldName+": ", " "+word+": ")
			want := "setting " + strings.ReplaceAll(one.name[:len(one.name)-len(word)], "NAME", "api") + one.oldName + " is now called "
			if !slices.ContainsFunc(c.Warnings("", nil), func(w string) bool { return strings.HasPrefix(w, want) }) {
				t.Errorf("there is no warning %q in %q", want, c.Renamed)
			}
		}
	}
	if len(c.Renamed) != 15 {
		t.Errorf("%d warnings: %q", len(c.Renamed), c.Renamed)
	}
	if s.Ages != "upstream" || s.Login != "k" || c.Mirror.Hard.Std() != 30*24*time.Hour {
		t.Errorf("read as %+v, %+v", s, c.Mirror)
	}
	now = strings.Replace(now, "{poll_every: 70}", "{max_records: 70}", 1) // look was the name of two settings
	now = strings.Replace(now, "{max_records: 5s}", "{poll_every: 5s}", 1)
	renamed, err := Parse([]byte(now), noEnv)
	if err != nil {
		t.Fatalf("%v in %s", err, now)
	}
	if c.Renamed = nil; !reflect.DeepEqual(c, renamed) {
		t.Errorf("with the old names the settings are\n%+v\nand with the new ones\n%+v", c, renamed)
	}
	_, err = Parse([]byte("mirror:\n  hot: 8MiB\n  memory: 9MiB\n"), noEnv)
	want := "line 2: setting mirror.hot is now called mirror.memory, which is in line 3; remove one of the two"
	if err == nil || err.Error() != want {
		t.Errorf("both names of a setting: %v", err)
	}
}

func TestNobodysViewerIsWarnedOf(t *testing.T) {
	for text, want := range map[string]bool{"": true, "viewer: {role: all}": false, "viewer: {sign_in: users}": false} {
		c, err := Parse([]byte(text), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(c.Warnings("", nil), "\n"), "viewer.role: it is empty"); got != want {
			t.Errorf("%q: warned %v, want %v", text, got, want)
		}
	}
}
