// Settings: servers in front of any upstream.

package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"understudy/e2e/binary"
	"understudy/internal/store/pgtest"
)

// Settings are the parts of a settings file in which tests differ.
type Settings struct {
	Upstream string
	Secret   string   // of the upstream account; default the simulated API's
	Mirror   string   // the mirror section, in one line
	Polls    string   // default: none
	More     string   // lines to add to the credentials; their secrets may name the files below
	Roles    string   // lines to add to the roles
	Source   string   // settings to add to the source, in one line
	Budget   string   // the source's limits of requests, in one line; default: far more than a test sends
	Role     string   // of people on this machine; default: none
	Users    string   // the lines of the file of users; default: nobody signs in
	SignIn   string   // how people sign in, in one line; default: sign_in: none, or users
	Search   string   // the search section, in one line
	Connect  string   // the connect section, in one line; default: none
	Store    string   // the sections of the database and of nodes, in lines; default: an SQLite file
	Args     []string // more arguments of the program
	Program  string   // the path of the program; default: the one that Main has built
}

// The names of files and folders beside the settings.
const (
	DataFolder = "data"
	AccessLog  = "access.log"
)

// storeVariable is an environment variable. With the value postgresql, servers of StartServer use a PostgreSQL database each.
const storeVariable = "UNDERSTUDY_STORE"

// databases are these databases.
var databases pgtest.Pool

// StartServer runs a server with settings of its own in a new folder. It has the demo's credentials and roles, and
// not the demo's limit of upstream requests.
func StartServer(t testing.TB, set Settings) (s *binary.Server, dir string) {
	t.Helper()
	dir = t.TempDir()
	if set.Secret == "" {
		set.Secret = APIToken
	}
	if set.Store == "" && os.Getenv(storeVariable) == "postgresql" {
		set.Store = fmt.Sprintf("store: {dsn: %q}\n", databases.Database(t))
	}
	if set.Mirror == "" {
		set.Mirror = "{}"
	}
	if set.Polls == "" {
		set.Polls = "[]"
	}
	if set.Search == "" {
		set.Search = "{}"
	}
	if set.SignIn == "" {
		set.SignIn = "sign_in: none"
		if set.Users != "" {
			set.SignIn = "sign_in: users"
		}
	}
	if set.Budget == "" {
		set.Budget = "rate: 2000, concurrency: 50"
	}
	if set.Connect != "" {
		set.Connect = "connect: " + set.Connect + "\n"
	}
	files := map[string]string{
		"users": set.Users, "oidc.secret": "secret",
		"twilio.token": set.Secret, "demo.secret": DemoToken, "masked.secret": MaskedToken,
		"understudy.yml": fmt.Sprintf(`data: ./%s
viewer: {listen: "127.0.0.1:0", %[12]s, role: %[10]q}
search: %[11]s
sources:
  twilio: {spec: twilio, upstream: %[2]q, user: %[3]s, secret: "file:twilio.token", listen: "127.0.0.1:0", %[15]s, polls: %[4]s%[9]s}
credentials:
  - name: demo
    source: twilio
    user: %[3]s
    secret: "file:demo.secret"
    role: all
    allow: [POST /2010-04-01/Accounts.json, POST /2010-04-01/Accounts/*, POST /2010-04-01/Accounts/*/Messages.json]
  - {name: masked, source: twilio, user: %[3]s, secret: "file:masked.secret", role: support}
%[7]sroles:
  support:
    twilio: {"*": see, phone: last4, body: hide}
%[8]s%[13]s%[14]smirror: %[5]s
log: {access: %[6]s}
`, DataFolder, set.Upstream, Account, set.Polls, set.Mirror, AccessLog, set.More, set.Roles, AfterComma(set.Source), set.Role, set.Search,
			set.SignIn, set.Connect, set.Store, set.Budget),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if set.Program == "" {
		set.Program = Program
	}
	s = startProgram(t, set.Program, dir, append([]string{"serve"}, set.Args...)...)
	for _, name := range []string{"viewer", "twilio"} {
		if s.URL(name) == "" {
			t.Fatalf("serve prints no address of %s; it prints %v\n%s", name, s.Names(), s.Log())
		}
	}
	return s, dir
}

// AfterComma returns a text to add to a flow mapping of YAML, behind a comma. It returns "" for "".
func AfterComma(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}
