// Packages: clients of other vendors that nobody here wrote call every GET operation they have,
// directly and through specs that were drawn from the vendors' documents, and get the same.

package vendors

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/e2e/binary"
	"understudy/e2e/imitation"
	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// judge is a package of PyPI, and the API that it is a client of.
type judge struct {
	name     string
	document string
	host     string // of a package that demands TLS: it goes through the proxy to the vendor's own host
	vendor   imitation.Vendor
	send     string // the one line by hand: what the doubts say to write to headers.send
	auth     string // of an API whose spec is drawn from what its lists answer: how it is asked
}

var judges = []judge{
	{name: "pydo", document: "digitalocean.yaml", host: "https://api.digitalocean.com", vendor: imitation.DigitalOcean},
	{name: "asana", document: "asana.yaml", vendor: imitation.Asana},
	{name: "pagerduty", document: "pagerduty.yaml", host: "https://api.pagerduty.com", vendor: imitation.PagerDuty,
		send: `Accept: "application/vnd.pagerduty+json;version=2"`},
	{name: "gitlab", document: "gitlab.yaml", vendor: imitation.GitLab, auth: "header Private-Token"},
}

// calls are what a package was given, by its operations.
type calls map[string]json.RawMessage

// TestPackagesGetTheSame walks with small documents that have the traits of the whole ones.
func TestPackagesGetTheSame(t *testing.T) {
	t.Parallel()
	for _, j := range judges {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			j.walk(t, filepath.Join("testdata", "openapi", strings.TrimSuffix(j.document, ".yaml")+".yaml"), "cold", "outage")
		})
	}
}

// TestPackagesOfWholeDocuments walks with the documents that the vendors publish.
func TestPackagesOfWholeDocuments(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("the whole documents are for make prove")
	}
	folder := os.Getenv("UNDERSTUDY_OPENAPI")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "openapi")
	}
	for _, j := range judges {
		t.Run(j.name, func(t *testing.T) {
			from := folder
			if j.auth != "" {
				from = filepath.Join("testdata", "openapi") // no document of this API is drawn
			}
			found, err := filepath.Glob(filepath.Join(from, strings.TrimSuffix(j.document, ".yaml")+".*"))
			if err != nil || len(found) == 0 {
				t.Skip("the published document is absent; name its folder in UNDERSTUDY_OPENAPI")
			}
			j.walk(t, found[0], "cold", "warm", "outage")
		})
	}
}

// walk compares what a package gets directly with what it gets through a drawn spec, in each phase.
// In an outage upstream is dead and the server was started anew.
func (j judge) walk(t *testing.T, document string, phases ...string) {
	api, err := imitation.New(document, j.vendor)
	if err != nil {
		t.Fatal(err)
	}
	web, secure := httptest.NewServer(api), httptest.NewTLSServer(api)
	t.Cleanup(web.Close)
	t.Cleanup(secure.Close)
	plan, err := json.Marshal(api.Plan())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	proxy, public := "", ""
	if j.host != "" {
		proxy, public = "connect: {listen: \"127.0.0.1:0\"}\n", fmt.Sprintf(", public_url: %q", j.host)
	}
	drawn := j.settings(t, dir, j.draw(t, dir, document, web.URL, api.Plan()), web.URL, proxy, public)
	var direct calls
	if j.host == "" {
		direct = j.call(t, web.URL, j.vendor.Secret, plan)
	} else {
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
		direct = j.call(t, secure.URL, j.vendor.Secret, plan, trust(t, dir, block)...)
	}
	server := rig.Start(t, dir, "serve")
	for _, phase := range phases {
		if phase == "outage" {
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
			api.Off.Store(true)
			server = rig.Start(t, dir, "serve")
		}
		before := api.Requests.Load()
		got := j.through(t, server, dir, plan)
		j.compare(t, phase, drawn, direct, got, api.Requests.Load()-before)
	}
	if j.host == "" {
		return
	}
	if err := server.Stop(); err != nil { // then the package reaches the port of the source by TLS, still in the outage
		t.Fatal(err)
	}
	j.settings(t, dir, drawn, web.URL, "tls: self\n", "")
	server = rig.Start(t, dir, "serve")
	j.compare(t, "outage", drawn, direct, j.call(t, server.URL("mine"), callerSecret, plan, trust(t, dir, printed(t, dir, "cert"))...), 0)
}

const callerSecret = "a-secret-of-the-callers-own"

// draw draws the spec: from the document, or from what the API answers where a list, or an object
// beside all lists, is asked for.
func (j judge) draw(t *testing.T, dir, document, upstream string, plan []imitation.Call) (drawn []byte) {
	t.Helper()
	args := []string{"spec", "from"}
	if j.auth == "" {
		args = append(args, document)
	} else {
		args = append(args, "--auth", j.auth, "--secret", "file:up.secret")
		for _, call := range plan {
			path := j.vendor.Prefix + call.Path
			for name, value := range call.Vars {
				path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
			}
			if call.List || len(call.Vars) == 0 {
				args = append(args, upstream+path)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "up.secret"), []byte(j.vendor.Secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	draw := exec.CommandContext(t.Context(), rig.Program, args...)
	draw.Dir = dir
	if j.auth == "" {
		draw.Dir = ""
	}
	var doubts bytes.Buffer
	draw.Stderr = &doubts
	drawn, err := draw.Output()
	if err != nil {
		t.Fatalf("spec from: %v\n%s", err, &doubts)
	}
	if j.send != "" && strings.Contains(doubts.String(), j.send+" is required") {
		drawn = bytes.Replace(drawn, []byte("\nheaders:\n"), []byte("\nheaders:\n  send: {"+j.send+"}\n"), 1)
	}
	return drawn
}

// settings writes the spec beside the settings of a server for it. It returns the spec.
func (j judge) settings(t *testing.T, dir string, drawn []byte, upstream, more, public string) []byte {
	t.Helper()
	files := map[string]string{
		"drawn.yaml": string(drawn), "up.secret": j.vendor.Secret, "caller.secret": callerSecret,
		"understudy.yml": fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none}
%ssources:
  mine: {spec: ./drawn.yaml, upstream: %q, secret: "file:up.secret", listen: "127.0.0.1:0", rate: 5000, concurrency: 20%s}
credentials:
  - {name: walker, source: mine, secret: "file:caller.secret", role: all}
log: {access: access.log}
`, more, upstream, public),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return drawn
}

// trust writes certificates to a file and returns the variables that have Python trust them alone.
func trust(t *testing.T, dir string, certificates []byte) []string {
	t.Helper()
	path := filepath.Join(dir, "trusted.pem")
	if err := os.WriteFile(path, certificates, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"SSL_CERT_FILE=" + path, "REQUESTS_CA_BUNDLE=" + path}
}

// printed returns what a command prints in a folder.
func printed(t *testing.T, dir, command string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), rig.Program, command)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// through runs the package against the server: at the port of the source, or by way of the proxy.
func (j judge) through(t *testing.T, server *binary.Server, dir string, plan []byte) calls {
	t.Helper()
	if j.host == "" {
		return j.call(t, server.URL("mine"), callerSecret, plan)
	}
	return j.call(t, j.host, callerSecret, plan, append(trust(t, dir, printed(t, dir, "ca")), "HTTPS_PROXY="+server.URL("connect"))...)
}

// call runs the package.
func (j judge) call(t *testing.T, address, secret string, plan []byte, variables ...string) calls {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*rig.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(".venv", "bin", "python"), "packages.py", j.name, address, secret)
	cmd.Dir, cmd.Env, cmd.Stdin = "../sdks/python", append(rig.WithoutProxies(os.Environ()), variables...), bytes.NewReader(plan)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%.3000s", j.name, err, &said)
	}
	var got calls
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%s: %v: %.300s", j.name, err, out)
	}
	return got
}

// Fields that a drawn spec calls secret. Their values are empty through the server.
var (
	secretField = regexp.MustCompile(`name: "?([\w.-]+)"?[^}]*class: secret`)
	secretName  = regexp.MustCompile(`(?i)secret|passw|token|key|credential|authorization`)
)

// What is not the same by nature: a drawn spec names no path that shows a credential or does something,
// so that it is refused; and what passes, as it is no JSON, is kept nowhere.
var (
	leftOutName = regexp.MustCompile(`(credentials|_key|kubeconfig|exec|restore|_?url)$`)
	passedPaths = regexp.MustCompile(`(?m)^passes: .*`)
)

// compare counts the operations that are equal, and names the others by their cause.
func (j judge) compare(t *testing.T, phase string, drawn []byte, want, got calls, requests int64) {
	t.Helper()
	secrets := map[string]bool{}
	for _, m := range secretField.FindAllSubmatch(drawn, -1) {
		name := string(m[1][bytes.LastIndexByte(m[1], '.')+1:])
		if !secretName.MatchString(name) {
			t.Errorf("the drawn spec takes %s for a secret", m[1])
		}
		secrets[name] = true
	}
	equal, leftOut, others := 0, []string{}, map[string][]string{}
	for name, result := range want {
		_, path, _ := strings.Cut(name, " /")
		passed := bytes.Contains(passedPaths.Find(drawn), []byte("/"+path))
		cause := refusal(got[name])
		switch {
		case bytes.Equal(emptied(t, result, secrets), emptied(t, got[name], secrets)):
			equal++
		case leftOutName.MatchString(path) && strings.HasPrefix(cause, "403"), passed && phase == "outage" && strings.HasPrefix(cause, "503"):
			leftOut = append(leftOut, name)
		default:
			others[cause] = append(others[cause], name)
		}
	}
	t.Logf("%s %s: %d operations equal, %d not so by nature, %d otherwise; %d requests upstream", j.name, phase, equal, len(leftOut),
		len(want)-equal-len(leftOut), requests)
	if len(leftOut) > 0 {
		slices.Sort(leftOut)
		t.Logf("not so by nature: %s", strings.Join(leftOut, ", "))
	}
	for _, cause := range slices.Sorted(maps.Keys(others)) {
		names := slices.Sorted(slices.Values(others[cause]))
		t.Errorf("%s: %d operations: %s: %.800s", phase, len(names), cause, strings.Join(names, ", "))
		for _, name := range names[:min(3, len(names))] {
			t.Logf("%s: %s", name, rig.FirstDifference(emptied(t, want[name], secrets), emptied(t, got[name], secrets)))
		}
	}
}

// refusal returns the status and the text of an error that a package was given; else "different".
func refusal(result json.RawMessage) string {
	var pages []json.RawMessage
	if json.Unmarshal(result, &pages) == nil && len(pages) > 0 {
		result = pages[len(pages)-1]
	}
	var said struct {
		Status int
		Error  string
	}
	if json.Unmarshal(result, &said) != nil || said.Error == "" {
		return "different"
	}
	return fmt.Sprintf("%d %.160s", said.Status, said.Error)
}

// emptied returns a result with the texts of secret fields empty.
func emptied(t *testing.T, result json.RawMessage, secrets map[string]bool) []byte {
	t.Helper()
	var whole any
	if len(result) == 0 {
		return nil
	}
	if err := json.Unmarshal(result, &whole); err != nil {
		t.Fatal(err)
	}
	var empty func(any)
	empty = func(of any) {
		switch of := of.(type) {
		case []any:
			for _, one := range of {
				empty(one)
			}
		case map[string]any:
			for name, value := range of {
				if _, isText := value.(string); isText && secrets[name] {
					of[name] = ""
				}
				empty(value)
			}
		}
	}
	empty(whole)
	out, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
