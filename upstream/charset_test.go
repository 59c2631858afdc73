// Charsets: each payload of the corpus is decoded and kept without loss, passes
// as it is and is not kept, or is no answer. The table of docs/explanation/upstream.md says which.

package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/charset"
)

// payload is a line of testdata/charsets.txt.
type payload struct{ name, declared, body, outcome, reason string }

func payloads(t testing.TB) []payload {
	t.Helper()
	data, err := os.ReadFile("testdata/charsets.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []payload
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), " | ")
		if len(cells) != 4 {
			t.Fatalf("%d cells: %s", len(cells), line)
		}
		body, err := strconv.Unquote(cells[2])
		if err != nil {
			t.Fatalf("%s: %v", cells[2], err)
		}
		outcome, reason, _ := strings.Cut(cells[3], ": ")
		out = append(out, payload{cells[0], cells[1], body, outcome, reason})
	}
	return out
}

func TestCharsets(t *testing.T) {
	docs, err := os.ReadFile("../docs/explanation/upstream.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| payload | declared as | what becomes of it |\n|---|---|---|\n"
	all := payloads(t)
	if len(all) < 40 {
		t.Errorf("only %d payloads", len(all))
	}
	for _, p := range all {
		c := scripted(t, &script{do: func(int, *http.Request) (*http.Response, error) {
			return reply(200, p.body, "Content-Type", p.declared), nil
		}})
		page, err := get(t, c, callsPath)
		outcome := "unusable"
		switch {
		case err != nil:
			e := failure(t, err)
			checktest.Equal(t, e.Why, understudy.FailUnusable, "%s: e.Why; %v", p.name, err)
			checktest.MustTrue(t, e.Page == nil, "%s: e.Page is %v; %v", p.name, e.Page, err)
			checktest.True(t, contains(err, p.reason), "%s: contains(err, p.reason) is false", p.name)
		case page.NotStored != "":
			outcome = "passes"
			checktest.Contains(t, page.NotStored, p.reason, "%s: page.NotStored", p.name)
			checktest.True(t, p.reason != "", "%s: p.reason is empty", p.name)
			checktest.MustTrue(t, page.Rows == nil, "%s: page.Rows is %v", p.name, page.Rows)
			checktest.True(t, page.Next.IsZero(), "%s: page.Next.IsZero() is false", p.name)
		default:
			outcome = "stored"
			lossless(t, p, page)
		}
		if outcome != p.outcome {
			t.Errorf("%s: %s, want %s", p.name, outcome, p.outcome)
		}
		if err == nil {
			sent, ok := charset.Charset(page.Charset).Encode(page.Body)
			checktest.MustTrue(t, ok, "%s: ok is false", p.name)
			checktest.Equal(t, string(sent), p.body, "%s: string(sent)", p.name)
			checktest.Equal(t, page.ContentType, p.declared, "%s: page.ContentType", p.name)
		}
		_, charset, _ := strings.Cut(p.declared, "charset=")
		if p.reason != "" {
			outcome += ": " + p.reason
		}
		table += fmt.Sprintf("| %s | %s | %s |\n", p.name, strings.Trim(charset, `"`), outcome)
	}
	if !strings.Contains(string(docs), table) {
		t.Errorf("docs/explanation/upstream.md does not have this table:\n%s", table)
	}
}

// lossless: the one record reads the same to encoding/json as to its writer, and
// nothing was replaced on the way.
func lossless(t *testing.T, p payload, page *understudy.Page) {
	t.Helper()
	checktest.MustTrue(t, utf8.Valid(page.Body), "%s: utf8.Valid(page.Body) is false", p.name)
	checktest.MustEqual(t, len(page.Rows), 1, "%s: len(page.Rows)", p.name)
	checktest.MustEqual(t, page.Rows[0].ID, "CA1", "%s: page.Rows[0].ID", p.name)
	row := page.Body[page.Rows[0].Start:page.Rows[0].End]
	var record map[string]string
	if err := json.Unmarshal(row, &record); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	if strings.ContainsRune(record["caller_name"], utf8.RuneError) && !bytes.Contains(row, []byte("\ufffd")) {
		t.Errorf("%s: %q lost something", p.name, record["caller_name"])
	}
	again, err := json.Marshal(record)
	var back map[string]string
	checktest.MustNoError(t, err, "%s", p.name)
	checktest.MustTrue(t, json.Unmarshal(again, &back) == nil, "%s: json.Unmarshal(again, &back) is %v", p.name,
		json.Unmarshal(again, &back))
	checktest.Equal(t, back["caller_name"], record["caller_name"], `%s: back["caller_name"]`, p.name)
}
