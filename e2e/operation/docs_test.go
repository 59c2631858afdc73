// Docs: what the documents tell people to type works, and their links lead
// somewhere.

package operation

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
)

// elsewhere are commands that another test runs, or that are that test.
var elsewhere = map[string]string{
	"make run":  "TestRunComparison in e2e/operation/docs_test.go",
	"make test": "make test in .ci/run",

	`grpcurl -plaintext -import-path follow/feedpb -proto feed.proto -d '{"after":"0","limit":3}' 127.0.0.1:4114 ` +
		"understudy.feed.v1.FeedService/Follow": "TestWiresOfTheFeed in e2e/operation/wires_test.go",

	"make bench ONLY=claims": "TestEveryPartQuickly in bench/bench_test.go",

	"python3 worker.py": "TestDocumentedWorkers in e2e/operation/workers_test.go",
	"sh worker.sh":      "TestDocumentedWorkers in e2e/operation/workers_test.go",

	"echo 'postgres://understudy:secret@127.0.0.1/reports' > reports.dsn": "TestTablesAsDocumented in e2e/operation/tables_test.go",
	"chmod 600 reports.dsn":           "TestTablesAsDocumented in e2e/operation/tables_test.go",
	"understudy tables status":        "TestTablesAsDocumented in e2e/operation/tables_test.go",
	"understudy tables rebuild calls": "TestTablesAsDocumented in e2e/operation/tables_test.go",

	"curl -fsSL https://downloads.example/understudy/v0.1.0/install.sh | sh":             "TestInstallerInstallsFiles in bench/release/release_test.go",
	"curl -fsSLO https://downloads.example/understudy/v0.1.0/understudy_0.1.0_amd64.deb": "TestDebianReadsThePackage in bench/release/release_test.go",
	"curl -fsSLO https://downloads.example/understudy/v0.1.0/SHA256SUMS":                 "TestReleaseIsReproducible in bench/release/prove_test.go",
	"sha256sum --check --ignore-missing SHA256SUMS":                                      "TestReleaseIsReproducible in bench/release/prove_test.go",
	"apt install ./understudy_0.1.0_amd64.deb":                                           "TestDebianPackageInItsSystem in bench/release/prove_test.go",
	"cp /usr/share/doc/understudy/examples/understudy.yml /etc/understudy/":              "TestDebianPackageInItsSystem in bench/release/prove_test.go",
	"systemctl start understudy":                                                         "TestDebianPackageInItsSystem in bench/release/prove_test.go",
	"systemctl reload understudy":                                                        "TestDebianPackageInItsSystem in bench/release/prove_test.go",
	"make release VERSION=v0.1.0 URL=https://downloads.example/understudy/v0.1.0":        "TestReleaseIsReproducible in bench/release/prove_test.go",
	"make module PATH=code.example.org/team/understudy":                                  "TestRenamedModuleIsBuiltElsewhere in bench/release/prove_test.go",

	"tar -xzf bin/release/v0.1.0/understudy-v0.1.0-linux-amd64.tar.gz -C /tmp":                                                     "TestReleaseIsReproducible in bench/release/prove_test.go",
	"go -C e2e test ./operation -run TestFormerVersions -former v0.1.0 -program /tmp/understudy-v0.1.0-linux-amd64/bin/understudy": "TestFormerVersions in e2e/operation/upgrade_test.go",
	"make release VERSION=v0.1.0 KEY=/home/release/.ssh/id_ed25519":                                                                "TestChecksumsAreSigned in bench/release/image_test.go",
	"ssh-keygen -Y verify -f signers -I release -n understudy-release -s SHA256SUMS.sig < SHA256SUMS":                              "TestChecksumsAreSigned in bench/release/image_test.go",
	"podman load --input understudy-v0.1.0.oci.tar":                                                                                "TestImageInAContainer in bench/release/image_test.go",
	"cd deploy":            "TestComposeFiles in e2e/operation/compose_test.go",
	"mkdir -m 700 secrets": "TestComposeFiles in e2e/operation/compose_test.go",
	"printf %s \"$TWILIO_TOKEN\" > secrets/twilio.token":                                                               "TestComposeFiles in e2e/operation/compose_test.go",
	"openssl rand -hex 24 > secrets/reports.secret":                                                                    "TestComposeFiles in e2e/operation/compose_test.go",
	"openssl rand -hex 24 > secrets/nodes.secret":                                                                      "TestComposeFiles in e2e/operation/compose_test.go",
	"openssl rand -hex 24 > secrets/database.password":                                                                 "TestComposeFiles in e2e/operation/compose_test.go",
	"echo \"database:5432:understudy:understudy:$(cat secrets/database.password)\" > secrets/pgpass":                   "TestComposeFiles in e2e/operation/compose_test.go",
	"understudy users add anna --role support --config understudy.yml":                                                 "TestComposeFiles in e2e/operation/compose_test.go",
	"understudy check --config understudy.yml":                                                                         "TestComposeFiles in e2e/operation/compose_test.go",
	"chown -R 65532 secrets":                                                                                           "TestImageInAContainer in bench/release/image_test.go",
	"docker compose exec understudy /usr/bin/understudy cert --config /etc/understudy/understudy.yml > understudy.pem": "TestImageInAContainer in bench/release/image_test.go",
	"docker compose up -d":                                                                                             "TestComposeFiles in e2e/operation/compose_test.go",
	"docker compose -f compose-cluster.yaml up -d":                                                                     "TestComposeFiles in e2e/operation/compose_test.go",
	"docker compose exec understudy /usr/bin/understudy backup --config /etc/understudy/understudy.yml --keys /data/monday.tar.zst": "TestRestoredServerSendsNothing in e2e/operation/backup_test.go",
	"understudy backup --keys s3://backups/understudy/monday.tar.zst":                                                               "TestBackupInABucket in e2e/operation/backup_test.go",
	"pg_dump --format=custom --file=understudy.dump postgres://understudy@db.internal/understudy":                                   "TestBackupOnPostgreSQL in e2e/operation/backup_test.go",
	"pg_restore --no-owner --exit-on-error --dbname=postgres://understudy@db.internal/restored understudy.dump":                     "TestBackupOnPostgreSQL in e2e/operation/backup_test.go",

	"understudy profile allocs --for 60s --since version":                                                "--since 'version' in cmd/understudy/testdata/profile.txtar",
	"understudy profile allocs --id 20261130T184512.000Z_trace_10000ms_v0.1.0-go1.26.8 --out slow.trace": "TestTraceIsFollowedToTheAPIAndOnTheExpressLane in e2e/answers/trace_test.go",
	"go tool trace slow.trace": "TestTraceIsFollowedToTheAPIAndOnTheExpressLane in e2e/answers/trace_test.go",
	"runuser -u understudy -- understudy restart --data /var/lib/understudy": "TestRestartUnderLoad in e2e/operation/restart_test.go",
	"curl -d watch=on http://127.0.0.1:4114/-/locks":                         "TestLocksAreWatchedUntilTheyAreNot in internal/diagnostics/locks_test.go",
	"curl 'http://127.0.0.1:4114/-/locks?format=json'":                       "TestLocksAreWatchedUntilTheyAreNot in internal/diagnostics/locks_test.go",
	"understudy profile stop":                                                "profile stop in cmd/understudy/testdata/profile.txtar",

	"understudy cert > understudy.pem": "TestTLSAsDocumented in e2e/operation/tls_test.go",
	"curl --cacert understudy.pem --cert client.pem --key client.key -u \"$SID:$SECRET\" https://localhost:4115/2010-04-01/Accounts.json": "TestClientCertificatesAsDocumented in e2e/operation/clients_test.go",
	"curl --cacert understudy.pem https://localhost:4114/-/health":                                                                        "TestTLSAsDocumented in e2e/operation/tls_test.go",
	"export SSL_CERT_FILE=$PWD/understudy.pem REQUESTS_CA_BUNDLE=$PWD/understudy.pem NODE_EXTRA_CA_CERTS=$PWD/understudy.pem":             "TestTLSAsDocumented in e2e/operation/tls_test.go",

	"understudy ca > ca.pem": "TestGhPrintsWhatItPrintsDirectly in e2e/vendorsdk/gh_test.go",
	"export HTTPS_PROXY=http://127.0.0.1:4117 SSL_CERT_FILE=$PWD/ca.pem":                          "TestGhPrintsWhatItPrintsDirectly in e2e/vendorsdk/gh_test.go",
	"export GH_HOST=localhost:4118 GH_ENTERPRISE_TOKEN=$SECRET SSL_CERT_FILE=$PWD/understudy.pem": "TestGhPrintsTheSameAtADropInPort in e2e/vendorsdk/gh_test.go",
	"gh issue list -R acme/tracker": "TestGhPrintsWhatItPrintsDirectly in e2e/vendorsdk/gh_test.go",
}

// documents are all pages, from the root of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 8 || !slices.Contains(all, "../../README.md") {
		t.Fatalf("found only %v", all)
	}
	return all
}

// step is a command that a page tells people to type.
type step struct {
	command string
	prints  []string // the lines that the page shows below it; none: the page shows no output
}

// commandRow is a row of a table that begins with a whole command. One with a placeholder is not whole.
var commandRow = regexp.MustCompile("^\\| `(understudy [^`A-Z]+)` \\|")

// commands returns the steps of a page: the lines of sh blocks, those behind "$ " in console blocks, and the commands
// with which a table's rows begin. The other lines of a console block are the output of the command before.
func commands(t *testing.T, page string) []step {
	t.Helper()
	var all []step
	for _, b := range rig.ReadBlocks(t, page) {
		for i := 0; i < len(b.Lines); i++ {
			line, typed := b.Lines[i], b.Language == "sh"
			if b.Language == "console" {
				if line, typed = strings.CutPrefix(line, "$ "); !typed && len(all) > 0 {
					all[len(all)-1].prints = append(all[len(all)-1].prints, line)
				}
			}
			for strings.HasSuffix(line, `\`) && i+1 < len(b.Lines) {
				i++
				line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(b.Lines[i])
			}
			line, _, _ = strings.Cut(line, "   #")
			if line = strings.TrimSpace(line); typed && line != "" && !strings.HasPrefix(line, "#") {
				all = append(all, step{command: line})
			}
		}
	}
	for line := range strings.Lines(rig.ReadFile(t, page)) {
		if row := commandRow.FindStringSubmatch(line); row != nil {
			all = append(all, step{command: row[1]})
		}
	}
	return all
}

func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	total := 0
	for _, page := range documents(t) {
		found := commands(t, page)
		if len(found) == 0 || page == tutorial { // TestOwnAPITutorial types that
			continue
		}
		total += len(found)
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			d := openDesk(t)
			d.open(page)
			for _, s := range found {
				d.take(s)
			}
		})
	}
	if total < 6 {
		t.Errorf("found only %d commands in the documents", total)
	}
}

// What `make run` starts prints its comparison, measured.
func TestRunComparison(t *testing.T) {
	t.Parallel()
	for file, start := range map[string]string{"../../Makefile": "\t@tools/steps run\n", "../../tools/steps": "exec .cache/bin/demo bin/understudy --arrivals 6\n"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), start) {
			t.Fatalf("make run starts something else than %s: %v", start, err)
		}
	}
	dir := t.TempDir()
	measured := filepath.Join(dir, "demo")
	build := exec.CommandContext(t.Context(), "go", "-C", "../../bench", "build", "-trimpath", "-o", measured, "./demo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	demo, err := binary.Start(measured, dir, append([]string{rig.Program}, binary.Demo("--arrivals", "6", "--latency", "50ms")[1:]...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := demo.Stop(); err != nil {
			t.Errorf("make run: %v\n%s", err, demo.Stderr())
		}
	})
	// Five lines: direct and through, each a time and its upstream requests.
	row := regexp.MustCompile(`(?m)^ *\w.*?  +[\d.]+m?s +\d+ +[\d.]+[mµ]?s +\d+ +\d+$`)
	rig.Await(t, func() string {
		if rows := row.FindAllString(demo.Stdout(), -1); len(rows) != 5 {
			return fmt.Sprintf("%d rows, want 5, in:\n%s", len(rows), demo.Stdout())
		}
		return ""
	})
	// Then every record is fetched, and found.
	rig.Await(t, func() string {
		if out := demo.Stdout(); !strings.Contains(out, demo.URL("viewer")+"/search\n") {
			return "no word that every record was fetched, in:\n" + out
		}
		return ""
	})
	if r := rig.Get(t, "", demo.URL("viewer")+"/-/search?q=kind:messages+booking&facets=true"); !strings.Contains(string(r.Body), `"hits":[{`) {
		t.Errorf("found nothing: %s", r.Body)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
)

// anchors are the names a page's headings can be linked by.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return all
}

func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			checked++
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if anchor == "" {
				continue
			}
			data, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if names := anchors(string(data)); !names[anchor] {
				t.Errorf("%s links to %s, which has only %v", page, m[1], slices.Sorted(maps.Keys(names)))
			}
		}
	}
	if checked < 15 {
		t.Errorf("checked only %d links", checked)
	}
}
