// Each check has a planted fault and a healthy twin, with real parts: SQLite, PostgreSQL, HTTP over TLS, disks.

package doctor

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/certificate"
	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/store/pgtest"
	"understudy/kit/lockwatch"
)

// planted is a fault on a healthy stage, and what a finding about it says.
type planted struct {
	plant              func(s *stage)
	check, state, mend string
	text               string
}

var plants = map[string]planted{
	"a warning about settings": {func(s *stage) { s.o.Warnings = []string{"token: chmod 600 it"} }, "settings", Warning, "", "chmod 600"},
	"invalid settings": {func(s *stage) { s.o.Settings, s.o.Invalid = nil, errors.New("line 2: unknown setting") }, "settings", Fault,
		"understudy check", "line 2"},
	"a server that is degraded": {func(s *stage) {
		s.health = map[string]any{"status": "degraded", "reasons": []string{"source api: down"}}
	},
		"server", Warning, "diagnostics.md", "source api: down"},
	"a server that is down": {func(s *stage) { s.healthEr = errors.New("503") }, "server", Fault, "understudy stop and serve", "503"},
	"changed settings": {func(s *stage) { s.pending.Changes = []config.Difference{{Name: "mirror.memory", Restart: true}} },
		"server", Warning,
		"understudy settings --diff", "mirror.memory"},
	"locks in two orders": {func(s *stage) {
		s.locks.Findings = []lockwatch.Finding{{Kind: lockwatch.Order, Steps: []string{"a, then b", "b, then a"}, Count: 1}}
	}, "locks", Warning, "understudy bugreport", "order: a, then b; b, then a"},
	"a read lock in a read lock": {func(s *stage) {
		s.locks.Findings = []lockwatch.Finding{{Kind: lockwatch.Recursive, Steps: []string{"a, then a"}, Count: 3}}
	}, "locks", Warning, "understudy bugreport", "recursive: a, then a"},
	"a lock for which others waited": {func(s *stage) {
		s.locks.Locks = []lockwatch.Lock{{Name: "store.write", Held: lockwatch.Times{Longest: 3 * time.Second},
			Waited: lockwatch.Times{Longest: 2 * time.Second}}}
	}, "locks", Warning, "understudy profile cpu", "store.write: waited for during 2s, held for up to 3s"},
	"a lock whose holder is stuck": {func(s *stage) {
		s.locks.Locks = []lockwatch.Lock{{Name: "store.write", Waiters: []lockwatch.Goroutine{{Age: time.Minute}}}}
	}, "locks", Fault, "understudy bugreport, then understudy stop and serve", "1m0s"},
	"no folder can be made": {func(s *stage) {
		s.o.Data = filepath.Join(s.o.Data, datadir.StoreFile)
	}, "disk", Fault, "the owner of the folder", "not a directory"},
	"a full disk":        {func(s *stage) { s.mount("size=16m") }, "disk", Fault, "free space there", "16 MiB"},
	"a disk that fills":  {func(s *stage) { s.mount("size=512m") }, "disk", Warning, "store.limit", "512 MiB"},
	"no room for a file": {func(s *stage) { s.mount("size=4g,nr_inodes=1") }, "disk", Fault, "df -i", "no space left"},
	"a disk in memory":   {func(s *stage) { s.mount("size=4g") }, "disk", Warning, "another folder as data", "tmpfs"},
	"files open for others": {func(s *stage) { s.chmod("", 0o755); s.chmod(datadir.StoreFile, 0o644) },
		"files", Warning, "chmod 700", datadir.StoreFile},
	"a clock that was set back": {func(s *stage) {
		at := time.Now().Add(2 * time.Hour)
		checktest.MustNoError(s, os.Chtimes(filepath.Join(s.o.Data, datadir.StoreFile), at, at), "Chtimes")
	}, "clock", Warning, "restart of the server", "2h0m0s"},
	"a clock that is an hour behind": {func(s *stage) { s.header("Date", time.Now().Add(90*time.Minute).UTC().Format(http.TimeFormat)) },
		"clock",
		Fault, "timedatectl set-ntp true", "-1h"},
	"a clock that is a little ahead": {func(s *stage) { s.header("Date", time.Now().Add(-20*time.Second).UTC().Format(http.TimeFormat)) },
		"clock",
		Warning, "timedatectl set-ntp true", "by 2"},
	"a clock other than the database's": {func(s *stage) {
		s.postgres("")
		s.o.Now = func() time.Time { return time.Now().Add(time.Hour) }
	}, "clock", Fault, "timedatectl", "1h0m0s"},
	"a name that is not found": {func(s *stage) {
		s.source.Upstream, s.source.Timeouts.Connect = "https://no-such-host.invalid", config.Duration(300*time.Millisecond)
	}, "dns", Fault, "getent hosts", "no-such-host.invalid"},
	"a certificate that has ended": {func(s *stage) { s.serve(newCertificate(s.T, time.Now().Add(-time.Hour))) }, "tls", Fault,
		"the certificate of localhost", "expired"},
	"a certificate that ends soon": {func(s *stage) { s.serve(newCertificate(s.T, time.Now().Add(48*time.Hour))) }, "tls", Warning,
		"a new certificate at localhost", "ends on"},
	"an own certificate that has ended": {func(s *stage) { s.files(newCertificate(s.T, time.Now().Add(-time.Hour)), false) },
		"tls", Fault, "another certificate", "it has expired"},
	"an own certificate that ends soon": {func(s *stage) { s.files(newCertificate(s.T, time.Now().Add(48*time.Hour)), false) },
		"tls", Warning, "then understudy reload", "it ends on"},
	"an own certificate with another key": {func(s *stage) { s.files(newCertificate(s.T, time.Now().Add(900*time.Hour)), true) },
		"tls", Fault, "its key in tls.cert and tls.key", "do not belong together"},
	"an own certificate without the server's name": {func(s *stage) {
		s.files(newCertificate(s.T, time.Now().Add(900*time.Hour)), false)
		s.o.Settings.Viewer.PublicURL = "https://calls.example.com"
	}, "tls", Warning, "another certificate", "it is not for calls.example.com of public_url"},
	"an own certificate that the server has not read": {func(s *stage) {
		s.files(newCertificate(s.T, time.Now().Add(900*time.Hour)), false)
		s.issued = map[string]certificate.State{"file": {Ends: time.Now().Add(time.Hour).UTC()}}
	}, "tls", Warning, "understudy reload", "the running server uses another one"},
	"a certificate that was not renewed": {func(s *stage) {
		s.issued = map[string]certificate.State{"calls.example.com": {Ends: time.Now().Add(time.Hour), FailedAt: time.Now(), Error: "a timeout"}}
	}, "tls", Fault, "port 443 of the host", "a timeout"},
	"a certificate that is being issued": {func(s *stage) { s.issued = map[string]certificate.State{"calls.example.com": {}} },
		"tls", Warning, "understudy doctor", "no certificate is issued yet"},
	"nobody listens": {func(s *stage) { s.source.Upstream = "https://127.0.0.1:1" },
		"upstream", Fault, "or the network: curl -I ", "refused"},
	"an API with an error": {func(s *stage) { s.refuse(502, "{}") }, "upstream", Fault, "the API at", "502"},
	"an answer of something else": {func(s *stage) {
		s.answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }
	},
		"upstream", Fault, "understudy spec try", ""},
	"a secret that is not there": {func(s *stage) { s.source.Secret = "file:nowhere" },
		"upstream", Fault, "understudy check", "no such file"},
	"a limit that is waited for":  {func(s *stage) { s.state = "limited" }, "upstream", Warning, "a lower sources.", "not asked"},
	"a refused credential":        {func(s *stage) { s.refuse(401, "{}") }, "credential", Fault, "understudy reload", "401"},
	"a credential without rights": {func(s *stage) { s.refuse(403, "{}") }, "credential", Warning, "its rights at the provider", "403"},
	"a token without scopes": {func(s *stage) { s.header("X-OAuth-Scopes", "") },
		"credential", Warning, "a token with scopes", "no scopes"},
	"few requests left": {func(s *stage) { s.header("X-RateLimit-Remaining", "10") },
		"rate", Warning, "sources.api.rate", "10 of 5000"},
	"a limit that is reached": {func(s *stage) { s.refuse(429, "{}") }, "rate", Warning, "another secret in its pool", "429"},
	"another journal mode": {func(s *stage) { s.query("PRAGMA journal_mode = DELETE") },
		"database", Warning, "a restart of the server", "delete"},
	"another program's file": {func(s *stage) { s.query("PRAGMA application_id = 7") },
		"database", Fault, "the setting data", "another program"},
	"a file that is no database": {func(s *stage) {
		path := filepath.Join(s.o.Data, datadir.StoreFile)
		checktest.MustNoError(s, os.WriteFile(path, []byte(strings.Repeat("no database ", 99)), 0o600), "write")
	}, "database", Fault, "store.dsn", "not a database"},
	"a newer file": {func(s *stage) {
		s.query("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)", "UPDATE counter SET needs = 99999")
	}, "database", Fault, "understudy restore", "newer Understudy"},
	"PostgreSQL ends statements": {func(s *stage) { s.postgres("&statement_timeout=5000") },
		"database", Warning, "SET statement_timeout = 0", "5s"},
	"PostgreSQL takes no writes": {func(s *stage) { s.postgres("&default_transaction_read_only=on") }, "database", Fault,
		"default_transaction_read_only = off", "read only"},
	"PostgreSQL has no connections left": {func(s *stage) { s.postgres(""); s.connect(20) },
		"database", Warning, "max_connections", "fewer than 16"},
	"PostgreSQL without fsync": {func(s *stage) { s.o.Settings.Store.DSN = databases.Database(s.T) },
		"database", Warning, "fsync = on", "fsync is off"},
	"PgBouncer": {func(s *stage) { s.postgres(""); s.o.Settings.Store.DSN = pgtest.Bouncer(s.T, postgresDSN) }, "database", Warning,
		"default_query_exec_mode=exec", "a pooler"},
	"PostgreSQL is away": {func(s *stage) { s.o.Settings.Store.DSN = "postgres://u:" + secret + "@127.0.0.1:1/d" },
		"database", Fault, "store.dsn", "refused"},
	"nobody answers Expect": {func(s *stage) { s.ignoreExpect() }, "expect", Fault, "an empty Expect:", "waits for 1"},
	"an address without server": {func(s *stage) { s.o.Settings.Viewer.PublicURL = "http://127.0.0.1:1" },
		"expect", Warning, "public_url", "refused"},
}

var (
	databases    pgtest.Pool
	postgresMu   sync.Mutex
	postgresDSN  string
	stopPostgres = func() error { return nil }
)

func (s *stage) chmod(name string, mode os.FileMode) {
	checktest.MustNoError(s, os.Chmod(filepath.Join(s.o.Data, name), mode), "Chmod")
}

func TestEachPlantedFaultIsFound(t *testing.T) {
	for name, c := range plants {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c.plant(s)
			found := Check(t.Context(), s.o)
			i := slices.IndexFunc(found, func(f Finding) bool {
				return f.Check == c.check && f.State == c.state && strings.Contains(f.Mend, c.mend) && strings.Contains(f.Text, c.text)
			})
			if i < 0 {
				t.Errorf("no %s of %s that names %q and is mended by %q in %+v", c.state, c.check, c.text, c.mend, found)
			}
			if n := s.asked.Load(); n > 1 {
				t.Errorf("the upstream was asked %d times", n)
			}
			checktest.Lacks(t, fmt.Sprint(found), secret, "the findings")
		})
	}
}

// A healthy stage has no other finding than ok, on both engines, and each check is among them.
func TestHealthyTwin(t *testing.T) {
	checks := map[string]bool{}
	for name, prepare := range map[string]func(s *stage){
		"SQLite": func(*stage) {}, "PostgreSQL": func(s *stage) { s.postgres("") },
		"PgBouncer": func(s *stage) {
			s.postgres("")
			s.o.Settings.Store.DSN = pgtest.Bouncer(s.T, postgresDSN) + "&default_query_exec_mode=exec"
		},
		"locks that nobody waits for": func(s *stage) {
			s.locks = lockwatch.Report{Watching: true, Findings: []lockwatch.Finding{{Kind: lockwatch.Long, Steps: []string{"a backup"}}},
				Locks: []lockwatch.Lock{{Name: "a backup", Held: lockwatch.Times{Longest: time.Minute}}}}
		},
		"a certificate of files": func(s *stage) {
			ends := time.Now().Add(900 * time.Hour).Truncate(time.Second).UTC()
			s.files(newCertificate(s.T, ends), false)
			s.issued = map[string]certificate.State{"file": {Ends: ends}}
		},
		"an issued certificate": func(s *stage) {
			s.issued = map[string]certificate.State{"calls.example.com": {Ends: time.Now().Add(900 * time.Hour)}}
		},
		"no folder yet":   func(s *stage) { s.o.Data = filepath.Join(s.o.Data, "new"); s.o.Ask = nil },
		"a refresh token": func(s *stage) { s.source.Token.Kind = "refresh_token" },
		"an upstream behind a cache": func(s *stage) {
			s.header("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			s.header("Age", "3600")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			prepare(s)
			for _, f := range Check(t.Context(), s.o) {
				checks[f.Check] = true
				checktest.Equal(t, f.State+f.Mend, OK, "%s: %s", f.Check, f.Text)
				checktest.True(t, f.Text != "", "%s has no text", f.Check)
			}
			want := int64(1)
			if name == "a refresh token" {
				want = 0
			}
			checktest.Equal(t, s.asked.Load(), want, "requests to the upstream")
		})
	}
	for _, check := range checkNames(t) {
		checktest.True(t, checks[check], "no healthy twin of %s", check)
	}
}

// checkNames returns the names of all checks in the source.
func checkNames(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	for _, file := range []string{"doctor.go", "source.go"} {
		text, err := os.ReadFile(file)
		checktest.MustNoError(t, err, "read the source")
		for _, m := range regexp.MustCompile(`judge\("([a-z]+)"`).FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	checktest.MustTrue(t, len(names) >= 12, "only %d checks: %v", len(names), names)
	return slices.Sorted(maps.Keys(names))
}

// Each problem that the source knows has a plant, so that a new one needs one too.
func TestEveryProblemHasAPlant(t *testing.T) {
	for _, check := range checkNames(t) {
		isPlanted := false
		for _, c := range plants {
			isPlanted = isPlanted || c.check == check
		}
		checktest.True(t, isPlanted, "no fault of %s is planted", check)
	}
	problems := 0
	for _, file := range []string{"doctor.go", "source.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		checktest.MustNoError(t, err, "parse")
		ast.Inspect(parsed, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if isProblem := ok && len(lit.Elts) == 4 && fmt.Sprint(lit.Type) == "problem"; !isProblem {
				return true
			}
			problems++
			var words []string // the texts by which it is mended
			ast.Inspect(lit.Elts[3], func(n ast.Node) bool {
				if b, ok := n.(*ast.BasicLit); ok {
					text, err := strconv.Unquote(b.Value)
					checktest.NoError(t, err, "Unquote")
					words = append(words, text)
				}
				return true
			})
			if text := strings.Join(words, ""); text != "" && !slices.ContainsFunc(slices.Collect(maps.Values(plants)), func(c planted) bool {
				return c.mend != "" && slices.ContainsFunc(append(words, text), func(w string) bool {
					return w != "" && (strings.Contains(w, c.mend) || strings.Contains(c.mend, strings.TrimSpace(w)) && len(w) > 8)
				})
			}) {
				t.Errorf("%s: no fault is planted that is mended by %q", file, text)
			}
			return true
		})
	}
	checktest.MustTrue(t, problems > 20, "only %d problems", problems)
}
