// Blocks: every fenced block of the documents is run, read or compared by a test.

package operation

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/e2e/rig"
)

// readers are the tests of a block by its language, or by its page and language.
var readers = map[string]string{
	"sh":        "TestDocumentedCommands in e2e/operation/docs_test.go",
	"console":   "TestDocumentedCommands in e2e/operation/docs_test.go",
	"json":      "TestDocumentedBlocksHaveATest in e2e/operation/blocks_test.go",
	"yaml":      "TestDocumentedSettings in e2e/operation/blocks_test.go",
	"nginx":     "TestTeamBehindTheDocumentedProxies in e2e/operation/team_test.go",
	"caddyfile": "TestTeamBehindTheDocumentedProxies in e2e/operation/team_test.go",

	"own-api.md python":      "TestOwnAPITutorial in e2e/operation/tutorial_test.go",
	"proxy.md python":        "TestDocumentedSDKLines in e2e/sdk/sdk_docs_test.go",
	"feed.md python":         "TestZeroMQSubscriberThroughKills in e2e/crashes/zeromq_test.go",
	"proxy.md js":            "TestDocumentedSDKLines in e2e/sdk/sdk_docs_test.go",
	"proxy.md go":            "TestDocumentedSDKLines in e2e/sdk/sdk_docs_test.go",
	"proxy.md env":           "TestZeroCode in e2e/connect/connect_test.go",
	"proxy.md js stripe":     "TestZeroCode in e2e/connect/connect_test.go",
	"proxy.md python stripe": "TestZeroCode in e2e/connect/connect_test.go",
	"proxy.md js octokit":    "TestZeroCode in e2e/connect/connect_test.go",

	// Texts that nobody types, and whose test is another one.
	"ARCHITECTURE.md text": "", // a drawing
	"tables.md sql":        "TestTablesAsDocumented in e2e/operation/tables_test.go",
	"nodes.md ini":         "TestSuitesBehindPgBouncer in internal/store/postgres_test.go", // with these settings
	"diagnostics.md ini":   "TestServiceManagerOpensSockets in e2e/operation/supervisor_test.go",
	"back-up.md text":      "", // lines of a crontab
	"commands.md text":     "TestThePageOfCommandsIsCurrent in cmd/understudy/commandspage_test.go",
	"find-a-fault.md text": "", // findings
	"forecast.md text":     "TestForecastPrintsWhatTheDocumentShows in cmd/understudy/kindscmd_test.go",
	"README.md text":       "TestRunComparison in e2e/operation/docs_test.go",
	"locks.md text":        "TestTheTreeNamesTheSessionToEnd in internal/store/locks/locks_test.go",
	"mirror.md text":       "", // a drawing
	"proxy.md text":        "", // a line of the access log
	"spec-from.md text":    "TestTryFailsWhereTheAnswerSaysThatThereIsMore in cmd/understudy/specs/try_test.go",
	"watches.md text":      "", // what is typed into the viewer
}

// typed is a line that a reader would type.
var typed = regexp.MustCompile(`^\s*(\$ )?(bin/understudy|understudy|curl|make|openssl|docker|python3) `)

// TestDocumentedBlocksHaveATest fails for a block that no test reads. A new one needs a language of readers: sh for
// commands, console for commands with "$ " and what they print, yaml for settings, or a comment with a file's name in
// the first line.
func TestDocumentedBlocksHaveATest(t *testing.T) {
	t.Parallel()
	for _, page := range documents(t) {
		name, blocks := filepath.Base(page), rig.ReadBlocks(t, page)
		for _, b := range blocks {
			where, known := readers[name+" "+b.Language]
			if !known {
				where, known = readers[b.Language]
			}
			if fileOf(b) != "" { // TestDocumentedCommands writes it
				continue
			}
			if !known {
				t.Errorf("%s: no test reads this block (language %q):\n%s", page, b.Language, b.Text())
			}
			if where != "" {
				(&desk{t: t}).exists(name, where)
			}
			if b.Language == "json" && !json.Valid([]byte(b.Text())) {
				t.Errorf("%s: no JSON:\n%s", page, b.Text())
			}
			if b.Language == "text" && where == "" && slices.ContainsFunc(b.Lines, typed.MatchString) {
				t.Errorf("%s: a text has a command; its language is sh or console:\n%s", page, b.Text())
			}
		}
		if name == "commands.md" { // it is made from the command line
			continue
		}
		inside := false
		for line := range strings.Lines(rig.ReadFile(t, page)) {
			if strings.HasPrefix(line, "```") {
				inside = !inside
			} else if !inside && (strings.HasPrefix(strings.TrimSpace(line), "```") || strings.HasPrefix(line, "    ") && typed.MatchString(line)) {
				t.Errorf("%s: no test reads an indented block: %s", page, line)
			}
		}
	}
}

// section is a section of a settings file, from its name to the next one.
var section = regexp.MustCompile(`(?m)^(\w+):.*\n(?:[ \t#].*\n|\n)*`)

// addSections adds to settings the sections of others that they do not have, and the role that those name.
func addSections(text, others string) string {
	names := section.FindAllStringSubmatch(text, -1)
	for _, s := range section.FindAllStringSubmatch(others, -1) {
		if !slices.ContainsFunc(names, func(n []string) bool { return n[1] == s[1] }) {
			text += s[0]
		} else if s[1] == "roles" && !strings.Contains(text, "\n  support:") {
			text = strings.Replace(text, "roles:\n", s[0], 1)
		}
	}
	return text
}

// readmeSettings returns the settings of the README.
func readmeSettings(t *testing.T) string {
	t.Helper()
	for _, b := range rig.ReadBlocks(t, "../../README.md") {
		if b.Language == "yaml" {
			return b.Text()
		}
	}
	t.Fatal("the README has no settings")
	return ""
}

// TestDocumentedSettings gives the settings of every page to `check`. A part of a settings file is completed by the
// README's, and a spec by settings that name it.
func TestDocumentedSettings(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, page := range documents(t) {
		if page == tutorial { // its settings name a spec that is drawn
			continue
		}
		for _, b := range rig.ReadBlocks(t, page) {
			if name := fileOf(b); b.Language != "yaml" || name != "" && name != "understudy.yml" {
				continue
			}
			tried++
			d := openDesk(t)
			d.open(page)
			text := b.Text()
			switch {
			case strings.HasPrefix(text, "name: "):
				d.write("spec.yaml", text)
				text = `sources: {calls: {spec: spec.yaml, user: "AC1", secret: "file:calls.token"}}` + "\n"
			case !strings.Contains("\n"+text, "\nsources:"):
				text = addSections(text, readmeSettings(t))
				if strings.Contains(text, "    github:") {
					text = strings.Replace(text, "sources:\n", "sources:\n  github: {spec: github, user: robin, secret: \"file:github.token\"}\n", 1)
				}
				if strings.Contains(text, "webhook: crm") {
					text += "webhooks: [{name: crm, " + hookURL + ", secret: \"file:crm.secret\", role: all}]\n"
				}
			}
			if strings.Contains(text, "tls: {cert: ") {
				rig.WriteCertificate(t, d.dir)
				text = strings.NewReplacer("/etc/understudy/fullchain.pem", "mail.crt", "/etc/understudy/privkey.pem", "mail.key").Replace(text)
			}
			if strings.Contains(text, "ca: clients.pem") {
				certificate, _ := rig.WriteCertificate(t, t.TempDir())
				d.write("clients.pem", rig.ReadFile(t, certificate))
			}
			d.write("understudy.yml", text)
			d.writeSecrets(text)
			if strings.Contains(text, "sign_in: users") { // the page has them added by a command
				d.write("users", "")
			}
			d.shell("bin/understudy check")
		}
	}
	if tried < 20 {
		t.Errorf("found only %d settings in the documents", tried)
	}
}
