// Tests of the table of settings, and of the document that is written from it.

package config

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"understudy/kit/logline"
)

var update = flag.Bool("update", false, "write docs/reference/settings.md from settings.txt")

const document = "../../docs/reference/settings.md"

func readDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The table has every setting, and nothing else.
func TestSettingsAreDocumented(t *testing.T) {
	inCode, inTable := map[string]bool{}, map[string]bool{}
	settingNames(reflect.TypeFor[Settings](), "", inCode)
	for _, s := range table() {
		if !inCode[s.name] {
			t.Errorf("settings.txt has %s, which is no setting", s.name)
		}
		if inTable[s.name] {
			t.Errorf("settings.txt has %s twice", s.name)
		}
		inTable[s.name] = true
		if !strings.Contains("basic access tuning limits", s.group) || s.group == "" {
			t.Errorf("settings.txt has %s in the group %q", s.name, s.group)
		}
	}
	for name := range inCode {
		if !inTable[name] {
			t.Errorf("settings.txt does not have %s", name)
		}
	}
}

func settingNames(t reflect.Type, prefix string, out map[string]bool) {
	for f := range t.Fields() {
		name, ft := prefix+f.Tag.Get("yaml"), f.Type
		switch {
		case f.Tag.Get("yaml") == "-": // no setting
		case name == "roles":
			out["roles.NAME.SOURCE"], out["roles.NAME.SOURCE.rows"], out["roles.NAME.SOURCE.do"] = true, true, true
		case name == "retention":
			out["retention.SOURCE.KIND"] = true
		case ft.Kind() == reflect.Map && ft.Elem().Kind() == reflect.Pointer:
			settingNames(ft.Elem().Elem(), name+".NAME.", out)
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Pointer:
			settingNames(ft.Elem().Elem(), name+"[].", out)
		case ft.Kind() == reflect.Pointer && ft.Elem().Kind() == reflect.Struct && !isUnmarshaler(ft.Elem()):
			settingNames(ft.Elem(), name+".", out)
		case ft.Kind() == reflect.Struct && !isUnmarshaler(ft):
			settingNames(ft, name+".", out)
		default:
			out[name] = true
		}
	}
}

// TestSettingsDocument compares what docs/reference/settings.md has of the table; -update writes it.
func TestSettingsDocument(t *testing.T) {
	got := readDocument(t)
	want := got
	for _, group := range []string{"Basic", "Access", "Tuning", "Limits"} {
		_, section, _ := strings.Cut(got, "\n## "+group+"\n")
		section, _, _ = strings.Cut(section, "\n|---|---|---|\n")
		want = replaceBlock(t, want, "\n## "+group+"\n"+section+"\n|---|---|---|\n", documentRows(strings.ToLower(group)))
	}
	want = replaceBlock(t, want, "| old name | new name |\n|---|---|\n", documentOldNames())
	want = replaceBlock(t, want, "These hold at once:\n\n", documentLive())
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Error("docs/reference/settings.md is not what settings.txt says: go test ./internal/config -run TestSettingsDocument -update")
	}
}

// replaceBlock replaces the lines between a text and the next empty line.
func replaceBlock(t *testing.T, text, after, lines string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, after)
	_, rest, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("docs/reference/settings.md has no %q", after)
	}
	return before + after + lines + "\n" + rest
}

// documentOldNames returns the rows of the table of old names.
func documentOldNames() string {
	var b strings.Builder
	for _, s := range table() {
		if s.oldName != "" {
			fmt.Fprintf(&b, "| `%s%s` | `%s` |\n", s.name[:strings.LastIndexByte(s.name, '.')+1], s.oldName, s.name)
		}
	}
	return b.String()
}

// documentRows returns the rows of the table of a group.
func documentRows(group string) string {
	var b strings.Builder
	for _, s := range table() {
		if s.group != group {
			continue
		}
		bounds, _, _ := strings.Cut(s.bounds, ",")
		most := bounds[strings.LastIndexByte(bounds, '.')+1:]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.name, s.shownDefault, strings.ReplaceAll(s.meaning, "{max}", most))
	}
	return strings.ReplaceAll(b.String(), "|  |", "| |")
}

// documentLive returns a list of the settings that are read again: first the sections that are read again as a
// whole, then those of each other section.
func documentLive() string {
	var whole []string
	var lists strings.Builder
	done := map[string]bool{}
	for _, s := range table() {
		section, _, _ := strings.Cut(strings.ReplaceAll(s.name, "[]", ""), ".")
		if done[section] {
			continue
		}
		done[section] = true
		names := liveBelow(section)
		switch {
		case len(names) == 1 && names[0] == section:
			whole = append(whole, "`"+section+"`")
		case len(names) > 0:
			fmt.Fprintf(&lists, "- `%s`\n", strings.Join(names, "`, `"))
		}
	}
	return "- " + strings.Join(whole, ", ") + "\n" + lists.String()
}

// liveBelow returns a name if all below it is live, otherwise what is live below it.
func liveBelow(name string) (names []string) {
	if isLive(name) {
		return []string{name}
	}
	done := map[string]bool{}
	for _, s := range table() {
		rest, ok := strings.CutPrefix(s.name, name+".")
		word, _, _ := strings.Cut(rest, ".")
		if ok && !done[word] {
			done[word] = true
			names = append(names, liveBelow(name+"."+word)...)
		}
	}
	return names
}

// A value outside of its bounds is refused, with the setting and the bound in the error.
func TestBoundsAreKept(t *testing.T) {
	for text, want := range map[string]string{
		"limits: {waiters: -1}":             "limits.waiters: -1 is negative; write 0 or more",
		"viewer: {export_rows: -3}":         "viewer.export_rows: -3 is negative; write 0 or more",
		"sources: {a: {spec: x, rate: -1}}": "sources.a.rate: -1 is negative; write 0 or more",
		"sync: {page: -2}":                  "sync.page: -2 is negative; write 0 or more",
		"sync: {slices: 33}":                "sync.slices: 33 is out of range; write a number from 1 to 32",
		"sync: {slice: 5m}":                 "sync.slice: 5m0s is too short; write at least 1h",
		"sync: {sweep: 1s}":                 "sync.sweep: 1s is too short; write at least 10s",
		"jobs: {workers: -1}":               "jobs.workers: -1 is out of range; write a number from 1 to 256",
		"jobs: {keep: 1000001}":             "jobs.keep: 1000001 is out of range; write a number from 1 to 1000000",
		"jobs: {lease: 2s}":                 "jobs.lease: 2s is too short; write at least 3s",
		"search: {max_records: -1}":         "search.max_records: -1 is out of range; write a number from 0 to 10000000",
		"search: {window: 100001}":          "search.window: 100001 is too high; write at most 100000",
		"search: {saved: 20000000}":         "search.saved: 20000000 is out of range; write a number from 0 to 10000000",
		"search: {time: 61s}":               "search.time: 1m1s is too long; write at most 1m0s",
		"feed: {buffer: -1}":                "feed.buffer: -1 is out of range; write a number from 0 to 10000000",
		"connect: {tunnels: 10001}":         "connect.tunnels: 10001 is out of range; write a number from 1 to 10000",
		"feed: {heartbeat: 31s}": "feed.heartbeat: 31s is too long; write at most 30s, as followers take longer silence for a lost " +
			"connection",
	} {
		if _, err := Parse([]byte(text), noEnv); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestNeedRestart(t *testing.T) {
	const text = `
data: d
viewer: {listen: "127.0.0.1:1", role: all}
sources:
  web: {spec: twilio, user: u, secret: "file:x", rate: 5}
mirror: {memory: 10MiB, newest: 10s}
`
	read := func(change ...string) *Settings {
		t.Helper()
		c, err := Parse([]byte(strings.NewReplacer(change...).Replace(text)), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []struct {
		change []string
		want   string
	}{
		{nil, ""},
		{[]string{"rate: 5", "rate: 6, polls: []", "file:x", "file:y", "role: all", "role: \"\"", "newest: 10s", "newest: 1s"}, ""},
		{[]string{"data: d", "data: e"}, "data"},
		{[]string{"mirror:", "jobs: {workers: 8, lease: 30s}\nmirror:"}, ""}, // as they are by default
		{[]string{"user: u", "user: v"}, "sources.web.user"},
		{[]string{"user: u", "user: u, auth_user: k"}, "sources.web.auth_user"},
		{[]string{"memory: 10MiB", "memory: 20MiB", "127.0.0.1:1", "127.0.0.1:2"}, "mirror.memory viewer.listen"},
		{[]string{"mirror:", "limits: {headers: 9KiB, waiters: 3, head_time: 1s}\nmirror:"}, "limits.head_time limits.headers"},
		{[]string{"rate: 5", "rate: 5, timeouts: {total: 3s}"}, "sources.web.timeouts.total"},
	} {
		if got := strings.Join(NeedRestart(read(), read(c.change...)), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.change, got, c.want)
		}
	}
}

func TestLogSettings(t *testing.T) {
	for text, want := range map[string]string{
		"log: {format: tekst}":            `line 1: "tekst" is not a format; write logfmt, json or terminal`,
		"log: {level: loud}":              `line 1: "loud" is not a level; write debug, info, warn or error`,
		"log: {levels: {jobs: loud}}":     `line 1: "loud" is not a level; write debug, info, warn or error`,
		"log: {levels: {job: debug}}":     `log.levels: "job" does not log; write any of acme, actions, agents, app, `,
		"log: {levels: {slowapi: debug}}": `log.levels: "slowapi" does not log; write any of acme, actions, agents, app, `,
	} {
		if _, err := Parse([]byte(text), noEnv); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]logline.Format{"": logline.Logfmt, "format: logfmt, ": logline.Logfmt, "format: text, ": logline.Logfmt,
		"format: json, ": logline.JSON, "format: terminal, ": logline.Terminal} {
		c, err := Parse([]byte("log: {"+text+"levels: {jobs: debug, store: warn}}"), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Log.Format.Std(); got != want {
			t.Errorf("%q is format %d, want %d", text, got, want)
		}
		if l := c.Log.Levels; len(l) != 2 || l["jobs"].Std() != slog.LevelDebug || l["store"].Std() != slog.LevelWarn {
			t.Errorf("the levels are %v", l)
		}
	}
}

// log.levels knows every package of the server that has a logger.
func TestLogPackages(t *testing.T) {
	found := map[string]bool{}
	for _, root := range []string{"../../internal", "../../mirror", "../../upstream"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte("*slog.Logger")) {
				name, _, _ := strings.Cut(filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, "../../"), "internal/")), "/")
				found[name] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	delete(found, "slowapi") // a simulator, which is no part of the server
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, logPackages) {
		t.Errorf("packages with a logger: %v, want %v", got, logPackages)
	}
}

// The document names every setting that is read again, or what it lies in.
func TestLiveSettingsAreDocumented(t *testing.T) {
	_, section, ok := strings.Cut(readDocument(t), "\n## Reading them again")
	if !ok {
		t.Fatal("docs/reference/settings.md does not say what SIGHUP does")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, s := range table() {
		named := false
		for name := strings.ReplaceAll(s.name, "[]", ""); name != "" && !named; name = name[:max(strings.LastIndexByte(name, '.'), 0)] {
			named = strings.Contains(section, "\n- `"+name+"`") || strings.Contains(section, ", `"+name+"`")
		}
		if named != s.isLive && !strings.Contains(section, "`"+s.name+"`") {
			t.Errorf("docs/reference/settings.md says that %s is read again: %v, want %v", s.name, named, s.isLive)
		}
	}
}

// A file with all its defaults means the same, and filling it again changes nothing.
func TestFilledFileMeansTheSame(t *testing.T) {
	env := func(name string) (string, bool) { return "1", name == "RATE" }
	for name, text := range map[string]string{
		"an empty file": "",
		"a comment":     "# nothing\n",
		"a source":      "sources:\n  api: {generic: \"http://127.0.0.1:1\"}\ndata: /data/${RATE} # mine\n",
		"a generic one": "sources:\n  api: {generic: \"http://127.0.0.1:1\"}\n",
		"an old name":   "mirror: {final: 1h, newest: 7s}\nlog:\n  format: json\n",
		"no value":      "jobs:\nsync: {}\n",
		"a proxy":       "sources: {api: {generic: \"http://127.0.0.1:1\"}}\nconnect: {}\n",
	} {
		want, err := Parse([]byte(text), env)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		filled, err := FillFile([]byte(text), env)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := Parse(filled, env)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, filled)
		}
		want.Renamed = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the filled file means something else:\n%s", name, filled)
		}
		if again, err := FillFile(filled, env); err != nil || !bytes.Equal(again, filled) {
			t.Errorf("%s: filled again, %v:\n%s\nbefore\n%s", name, err, again, filled)
		}
		if strings.Contains(text, "RATE") && !strings.Contains(string(filled), "${RATE}") {
			t.Errorf("%s: a value of the environment is in the text:\n%s", name, filled)
		}
	}
}

// Every text of the settings is marked, and no mark is shown but those of settings that cannot be secret.
func TestShownValuesHaveNoSecret(t *testing.T) {
	const mark = "marked-text"
	c := &Settings{Sources: map[string]*Source{"api": {}}, Credentials: []*credentialConfig{{}}, Webhooks: []*Webhook{{}},
		Connect: &connectConfig{}, Forecasts: []*forecastConfig{{}}, Roles: map[string]map[string]roleConfig{"support": {"api": {}}}}
	marked := 0
	visitSettings(reflect.ValueOf(c), "", "", func(path, _ string, v reflect.Value) bool {
		switch {
		case !v.CanSet():
		case v.Kind() == reflect.String:
			marked++
			v.SetString(mark)
		case v.Type() == reflect.TypeFor[[]string](), v.Type() == reflect.TypeFor[words]():
			marked++
			v.Set(reflect.ValueOf([]string{mark}).Convert(v.Type()))
		case v.Type() == reflect.TypeFor[[]SecretRef]():
			v.Set(reflect.ValueOf([]SecretRef{"cmd:echo " + mark}))
		case v.Type() == reflect.TypeFor[map[string]string]():
			v.Set(reflect.ValueOf(map[string]string{"X-Api-Key": mark}))
		}
		return true
	})
	c.Sources["api"].Secret, c.Mail.Secret, c.Roles["support"]["api"] = "file:secret", "cmd:echo "+mark, roleConfig{}
	shown := map[string]string{}
	for _, v := range Values(*c) {
		shown[v.Name] = v.Text
		word := strings.TrimRight(v.Name[strings.LastIndexByte(v.Name, '.')+1:], "[0]")
		if strings.Contains(v.Text, mark) && !slices.Contains(shownTexts, word) && !slices.Contains(shownTexts, word+"[]") {
			t.Errorf("%s: %q is shown", v.Name, v.Text)
		}
	}
	if marked < 40 {
		t.Errorf("only %d texts are marked", marked)
	}
	for name, want := range map[string]string{
		"sources.api.secret": "file:secret", "mail.secret": "(hidden)", "sources.api.pool[0]": "(hidden)", "store.dsn": "(hidden)",
		"sources.api.headers.send.X-Api-Key": "(hidden)", "webhooks: " + mark + ".url": "(hidden)", "audit.send": "(hidden)",
		"sources.api.tables.dsn": "(hidden)", "sources.api.listen": mark, "sources.api.rate": "0",
	} {
		if shown[name] != want {
			t.Errorf("%s: %q, want %q", name, shown[name], want)
		}
	}
}

func TestCompareSaysWhatAReloadAndARestartChange(t *testing.T) {
	read := func(text string) *Settings {
		c, err := Parse([]byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const api = "sources: {api: {generic: \"http://127.0.0.1:1\", rate: %s}}\n%s"
	started := read(fmt.Sprintf(api, "5", "store: {limit: 1GiB}\nsync: {slices: 3}"))
	current := read(fmt.Sprintf(api, "6", "store: {limit: 2GiB}\nretention: {api: {calls: 30d}}")) // of which a reload applied the rate
	for name, c := range map[string]struct {
		file string
		want []Difference
	}{
		"the file of the last reload": {fmt.Sprintf(api, "6", "store: {limit: 2GiB}\nretention: {api: {calls: 30d}}"), []Difference{
			{"sync.slices", "3", "4", true}, {"store.limit", "1073741824", "2147483648", true}, {"retention.api.calls", "", "720h0m0s", true}}},
		"the first file": {fmt.Sprintf(api, "5", "store: {limit: 1GiB}\nsync: {slices: 3}"), []Difference{{"sources.api.rate", "6", "5", false}}},
	} {
		got := Compare(Values(*started), Values(*current), Values(*read(c.file)))
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %v is missing in %v", name, want, got)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
