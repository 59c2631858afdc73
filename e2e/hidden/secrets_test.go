// Secrets: the account's own token is nowhere to be found.

package hidden

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/store"
	"understudy/spec"
	"understudy/upstream"
)

// tokens asks upstream itself for every account's token.
func tokens(t *testing.T, up string) []string {
	t.Helper()
	var page struct {
		Accounts []struct {
			Token string `json:"auth_token"`
		}
	}
	if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.APIToken, up+rig.Version+"/Accounts.json?PageSize=1000").Body, &page); err != nil {
		t.Fatal(err)
	}
	all := []string{rig.APIToken}
	for _, a := range page.Accounts {
		if len(a.Token) < 8 {
			t.Fatalf("upstream gives %q as a token: this test would look for nothing", a.Token)
		}
		all = append(all, a.Token)
	}
	return all
}

func TestUpstreamSecretStaysInside(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "50").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up})
	user := rig.Account + ":" + rig.DemoToken
	made, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.APIToken, up+rig.Version+"/Accounts.json", "FriendlyName=Third")
	if err != nil || made.Status != 201 {
		t.Fatalf("making an account: %d %v", made.Status, err)
	}
	secrets := tokens(t, up)
	if len(secrets) != 4 {
		t.Fatalf("upstream tells of %d tokens, want 4", len(secrets))
	}
	clean := func(where string, data []byte) {
		t.Helper()
		for _, s := range secrets {
			if bytes.Contains(data, []byte(s)) {
				t.Errorf("%s holds a token: %s", where, around(data, s))
			}
		}
	}
	dropIn, web := house.URL("twilio"), house.URL("viewer")
	one := rig.Version + "/Accounts/" + rig.Account + ".json"
	requests := [][]string{
		{"GET", dropIn + rig.Version + "/Accounts.json"}, {"GET", dropIn + rig.Version + "/Accounts.json?PageSize=1"}, {"GET", dropIn + one},
		{"GET", dropIn + rig.Version + "/Accounts.json?Status=active"}, {"HEAD", dropIn + one},
		{"POST", dropIn + one, "FriendlyName=Renamed"}, {"POST", dropIn + rig.Version + "/Accounts.json", "FriendlyName=Fourth"},
		{"GET", dropIn + "/-/health"}, {"GET", dropIn + rig.Base + "/Nothing.json"}, {"GET", dropIn + rig.Base + "/Calls.json?PageSize=x"},
		{"GET", web + "/"}, {"GET", web + "/index.json"}, {"GET", web + "/twilio/accounts"}, {"GET", web + "/twilio/accounts.json"},
		{"GET", web + "/twilio/accounts/" + rig.Account}, {"GET", web + "/twilio/accounts/" + rig.Account + ".json"},
		{"GET", web + "/-/stats"}, {"GET", web + "/-/health"}, {"GET", web + "/twilio/calls?wrong=1"},
	}
	accounts := 0
	for range 2 { // cold, then held
		for _, q := range requests {
			body := ""
			if len(q) > 2 {
				body = q[2]
			}
			r, err := rig.Ask(q[0], user, q[1], body)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(r.Body, []byte(`"auth_token":""`)) {
				accounts++
			}
			var sent bytes.Buffer
			_ = r.Header.Write(&sent)
			clean(q[0]+" "+q[1], append(sent.Bytes(), r.Body...))
			if _, ok := secretsIn(r.Body); ok {
				t.Errorf("%s %s shows an auth_token that is not empty", q[0], q[1])
			}
		}
	}
	if accounts < 12 {
		t.Errorf("only %d answers held an emptied auth_token: this test looks in the wrong places", accounts)
	}
	// In an outage and with a credential that upstream refuses, too.
	rig.Control(t, up, "/-/faults", `{"rules":[{"match":"","status":401}]}`)
	for _, q := range requests[:4] {
		clean("in an outage "+q[1], rig.Get(t, user, q[1]+"?PageSize=3", "Prefer", "wait=1").Body)
	}
	rig.Control(t, up, "/-/faults", `{"rules":[]}`)

	clean("standard output and error", []byte(house.Log()))
	if err := house.Stop(); err != nil {
		t.Error(err)
	}
	clean("standard output and error at the end", []byte(house.Log()))
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "twilio.token") {
			return err
		}
		data, err := os.ReadFile(path)
		files++
		clean(path, data)
		return err
	})
	if err != nil || files < 6 {
		t.Errorf("looked at %d files: %v", files, err)
	}
	checkStored(t, filepath.Join(dir, rig.DataFolder), clean)
}

func around(data []byte, text string) string {
	at := bytes.Index(data, []byte(text))
	return string(bytes.ToValidUTF8(data[max(0, at-60):min(len(data), at+len(text)+20)], nil))
}

// secretsIn finds an auth_token that is not empty, however JSON or HTML spell it.
func secretsIn(body []byte) (string, bool) {
	for _, start := range []string{`"auth_token":"`, `"auth_token": "`, `auth_token&#34;: &#34;`} {
		_, rest, found := bytes.Cut(body, []byte(start))
		if found && !bytes.HasPrefix(rest, []byte(`"`)) && !bytes.HasPrefix(rest, []byte("&#34;")) {
			return string(rest[:min(len(rest), 40)]), true
		}
	}
	return "", false
}

// checkStored reads the accounts out of the database: bodies are packed there,
// and a search through the file's bytes alone would prove little.
func checkStored(t *testing.T, data string, clean func(string, []byte)) {
	t.Helper()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(data, "understudy.db"), Specs: map[string]*spec.Spec{"twilio": sp}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stored := func(what string, body []byte, err error) {
		t.Helper()
		if err != nil || !bytes.Contains(body, []byte(`"auth_token":""`)) {
			t.Errorf("the stored %s has no emptied auth_token: %v", what, err)
		}
		clean("the stored "+what, body)
	}
	target, err := sp.Resolve("twilio", rig.Version+"/Accounts.json", "")
	if err != nil {
		t.Fatal(err)
	}
	page, err := db.ReadPage(ctx, target.Key)
	if err != nil {
		t.Fatal(err)
	}
	stored("list", page.Body, nil)
	for _, row := range page.Rows {
		record, err := db.Record(ctx, "twilio", "accounts", "accounts", row.ID)
		if err != nil {
			t.Fatal(err)
		}
		stored("account "+row.ID, record.Body, nil)
	}
}
