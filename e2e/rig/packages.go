// What packages of vendors find, and how they are run.

package rig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"understudy/internal/checktest"
)

// Found maps the name of each list to what a package found in it: its records, or its error as a JSON string.
type Found map[string]json.RawMessage

// Comparison compares what a package finds directly and through Understudy.
type Comparison struct {
	// Unreadable are lists that the package cannot read as the provider documents them. Both ways it has to say the same.
	Unreadable []string
	Empty      []string // lists without records
}

// Records counts the records of all lists.
func (f Found) Records() int {
	n := 0
	for _, list := range f {
		var rows []json.RawMessage
		_ = json.Unmarshal(list, &rows)
		n += len(rows)
	}
	return n
}

// Compare reports a failure unless both ways gave the same records, and some in every list. up and address are the
// addresses of both ways: an absolute URL names the server that answers.
func (w Comparison) Compare(t *testing.T, round string, direct, through Found, up, address string) {
	t.Helper()
	if len(direct) == 0 || len(direct) != len(through) {
		t.Fatalf("%s: %d lists directly, %d through", round, len(direct), len(through))
	}
	for _, name := range slices.Sorted(maps.Keys(direct)) {
		want := bytes.ReplaceAll(direct[name], []byte(up), []byte(address))
		want = AuthToken.ReplaceAll(want, []byte(`$1""`))
		var rows []json.RawMessage
		if err := json.Unmarshal(want, &rows); (err != nil || len(rows) == 0 && !slices.Contains(w.Empty, name)) && !slices.Contains(w.Unreadable, name) {
			t.Errorf("%s: directly it is %.200s", name, want)
			continue
		}
		if have := through[name]; !bytes.Equal(want, have) {
			t.Errorf("%s, %s: %s", name, round, FirstDifference(want, have))
		}
	}
}

// Collect returns what a package returned as Found keeps it.
func Collect[T any](records []T, err error) json.RawMessage {
	var v any = records
	if err != nil {
		v = err.Error()
	}
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(fmt.Sprint("cannot be written: ", err))
	}
	return b
}

// Between passes requests on to an API, as long as pass allows it; else the API is down.
// Addresses of the API in plain answers become addresses of this server, which Between returns.
func Between(t *testing.T, api string, pass func(*http.Request) bool) string {
	t.Helper()
	to, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			here := "http://" + r.Request.Host
			for i, link := range r.Header["Link"] {
				r.Header["Link"][i] = strings.ReplaceAll(link, api, here)
			}
			body, err := io.ReadAll(r.Body)
			body = bytes.ReplaceAll(body, []byte(api), []byte(here))
			r.Body = io.NopCloser(bytes.NewReader(body))
			if r.ContentLength > 0 {
				r.ContentLength = int64(len(body))
				r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			}
			return err
		}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !pass(r) {
			http.Error(w, `{"error":{"message":"down"}}`, http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// FindProgram returns the path of a program of Debian's packages. One that is not installed ends the test.
func FindProgram(t testing.TB, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Fatalf("%s is not installed; make setup installs it", name)
	return ""
}

// RunLines runs a program of a spec's connect, where its packages are.
func RunLines(t *testing.T, language, code string) ([]byte, error) {
	t.Helper()
	dir, args := "../sdks/python", []string{filepath.Join(".venv", "bin", "python"), "-c", code}
	switch language {
	case "js":
		dir, args = "../sdks/node", []string{"node", "--input-type=module", "-e", code}
	case "sh":
		dir, args = ".", []string{"sh", "-c", code}
	case "go":
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		dir, args = ".", []string{"go", "run", file}
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, WithoutProxies(os.Environ())
	return cmd.CombinedOutput()
}

// Parents are the records of the imitation of Twilio whose own lists packages walk.
type Parents struct {
	Call        string `json:"call"`    // with recordings
	Noticed     string `json:"noticed"` // a call with notifications
	Message     string `json:"message"` // with media
	Conference  string `json:"conference"`
	Recorded    string `json:"recorded"` // a conference with recordings
	Transcribed string `json:"transcribed"`
	Queue       string `json:"queue"`
}

// FindParents asks the imitation at an address for records that have lists of their own.
func FindParents(t *testing.T, up string) Parents {
	t.Helper()
	row := func(list, key string, holds func(map[string]any) bool) map[string]any {
		for page := Base + list; page != ""; {
			var body map[string]any
			r, err := Ask(http.MethodGet, Account+":"+APIToken, up+page, "")
			checktest.MustNoError(t, err, "%s", page)
			checktest.MustNoError(t, json.Unmarshal(r.Body, &body), "%s", page)
			checktest.MustEqual(t, r.Status, http.StatusOK, "%s: r.Status", page)
			rows, _ := body[key].([]any)
			for _, r := range rows {
				if r, ok := r.(map[string]any); ok && holds(r) {
					return r
				}
			}
			page, _ = body["next_page_uri"].(string)
		}
		t.Fatalf("nothing in %s has what is looked for", list)
		return nil
	}
	text := func(r map[string]any, field string) string { s, _ := r[field].(string); return s }
	any1 := func(map[string]any) bool { return true }
	has := func(field string) func(map[string]any) bool {
		return func(r map[string]any) bool { return text(r, field) != "" }
	}
	var of Parents
	of.Call = text(row("/Recordings.json?PageSize=1000", "recordings", func(r map[string]any) bool { return text(r, "conference_sid") == "" }), "call_sid")
	of.Recorded = text(row("/Recordings.json?PageSize=1000", "recordings", has("conference_sid")), "conference_sid")
	of.Noticed = text(row("/Notifications.json", "notifications", has("call_sid")), "call_sid")
	of.Message = text(row("/Messages.json?PageSize=1000", "messages", func(r map[string]any) bool { return text(r, "num_media") != "0" }), "sid")
	of.Conference = text(row("/Conferences.json?Status=in-progress", "conferences", any1), "sid")
	of.Transcribed = text(row("/Transcriptions.json", "transcriptions", any1), "recording_sid")
	of.Queue = text(row("/Queues.json", "queues", func(r map[string]any) bool { n, _ := r["current_size"].(float64); return n > 0 }), "sid")
	return of
}
