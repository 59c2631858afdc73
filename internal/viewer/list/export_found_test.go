// Exports of what a search found: their fields, and whether they say that something is missing.

package list_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// An export of one kind, by its form, a condition or a narrowed search, has that kind's fields; one of several kinds has what
// they share, and codes with their meaning. Each role has the fields that it sees, as it sees them.
func TestExportOfASearchHasTheFieldsOfItsKinds(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	for path, names := range map[string][]string{
		"?q=status%3Afailed":                                  {"status", "error_code", "from", "to"},
		"?q=status%3Afailed&kind=messages":                    {"status", "error_code", "to", "num_media", "body"},
		"?q=kind%3Amessages+status%3Afailed":                  {"status", "error_code", "to", "num_media", "body"},
		"?q=status%3Afailed&narrow=kind%3Amessages":           {"status", "error_code", "to", "num_media", "body"},
		"?q=status%3Afailed+OR+kind%3Amessages":               {"status", "error_code", "from", "to"},
		"?q=status%3Afailed+-%28kind%3Acalls+no%3Adirection)": {"status", "error_code", "from", "to"},
	} {
		for who, hidden := range map[string]string{"alltoken": "", "supporttoken": "body"} {
			table, err := csv.NewReader(strings.NewReader(h.Page("/search.csv"+path, viewertest.Browser{Token: who}))).ReadAll()
			viewertest.Must(t, err)
			cell := func(row int, name string) string {
				if at := slices.Index(table[0], name); at >= 0 {
					return table[row][at]
				}
				return ""
			}
			for _, name := range append(names, "source", "kind", "id", "time", "found", "meaning") {
				if (name == hidden) == slices.Contains(table[0], name) {
					t.Errorf("%s %s: %q in %q", who, path, name, table[0])
				}
			}
			row := slices.IndexFunc(table, func(cells []string) bool { return slices.Contains(cells, "30006") })
			if row < 0 {
				t.Fatalf("%s %s: no code 30006", who, path)
			}
			checktest.True(t, cell(row, "status") != "", `%s %s: cell(row, "status") is empty`, who, path)
			checktest.True(t, cell(row, "time") != "", `%s %s: cell(row, "time") is empty`, who, path)
			checktest.Equal(t, cell(row, "meaning"), "Landline, or carrier unreachable",
				`%s %s: cell(row, "meaning")`, who, path)
			if masked := strings.HasPrefix(cell(row, "to"), "********"); masked != (who == "supporttoken") {
				t.Errorf("%s %s: to %s", who, path, cell(row, "to"))
			}
		}
	}
}

// unheld finds what is held, and says that it may not be all.
type unheld struct{ page.Search }

func (u unheld) Find(ctx context.Context, c understudy.Caller, a query.SearchRequest) (*query.SearchResult, error) {
	r, err := u.Search.Find(ctx, c, a)
	if err == nil {
		r.Incomplete = "not all are held"
	}
	return r, err
}

// Picked records are all that was asked for when each of them came, whatever else is not held.
func TestExportOfPickedRecordsIsCompleteWhenAllCame(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	table, err := csv.NewReader(strings.NewReader(h.Page("/search.csv?q=status%3Abusy", viewertest.All))).ReadAll()
	viewertest.Must(t, err)
	one, two := table[1][2], table[2][2]
	h.Viewer.Visitor.Options.Search = unheld{h.Viewer.Visitor.Options.Search}
	for text, complete := range map[string]bool{
		"id:" + one + "," + two: true, "id:" + one + " OR id:" + two: true, "id:" + one + "," + one: true,
		"id:" + one + ",CA00000000000000000000000000000000": false, "id:" + one[:33] + "*": false, "status:busy": false,
	} {
		path := "/search.csv?q=" + strings.NewReplacer(" ", "+", ":", "%3A").Replace(text)
		if body := h.Page(path, viewertest.All); !strings.Contains(body, one) || strings.Contains(body, "# not complete") == complete {
			t.Errorf("%s: want complete %v: %.900s", text, complete, body)
		}
	}
}

// Searches are exported as found, with the mark of what is missing.
func TestExportFound(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	_, body, head := h.Get("/search.csv?q=status%3Abusy", viewertest.All)
	records, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	viewertest.Must(t, err)
	checktest.True(t, slices.Equal(records[0][:5], []string{"source", "kind", "id", "time", "found"}),
		"records[0][:5] is %v", records[0][:5])
	checktest.MustTrue(t, len(records) >= 10, "len(records) is %v, want >= 10", len(records))
	checktest.Equal(t, records[1][0], "twilio", "records[1][0]")
	checktest.True(t, strings.HasPrefix(head.Get("Content-Disposition"), `attachment; filename="search-2026`),
		`head.Get("Content-Disposition") is %q`, head.Get("Content-Disposition"))
	_, body, _ = h.Get("/search.json?q=status%3Abusy", viewertest.All)
	var doc struct {
		Matches  []any
		Rows     []map[string]any
		Count    int
		Complete bool
	}
	viewertest.Must(t, json.Unmarshal([]byte(body), &doc))
	checktest.Equal(t, doc.Count, len(records)-1, "%d of %d rows: doc.Count", len(doc.Rows), doc.Count)
	checktest.True(t, doc.Complete, "%d of %d rows: doc.Complete is false", len(doc.Rows), doc.Count)
	checktest.Equal(t, doc.Rows[0]["understudy.kind"], "calls", `%d of %d rows: doc.Rows[0]["understudy.kind"]`,
		len(doc.Rows), doc.Count)
	checktest.Equal(t, doc.Rows[0]["status"], "busy", `%d of %d rows: doc.Rows[0]["status"]`, len(doc.Rows),
		doc.Count)
	_, body, _ = h.Get("/search.jsonl?q=status%3Abusy", viewertest.Support)
	checktest.Equal(t, strings.Count(body, "\n"), doc.Count, `strings.Count(body, "\n")`)
	checktest.True(t, !regexp.MustCompile(`"\+\d`).MatchString(body),
		"regexp.MustCompile(`\"\\+\\d`).MatchString(body) is true")
	checktest.Contains(t, body, `"********`, "body")
	// A sorted list with columns, and all of its rows.
	_, body, _ = h.Get("/twilio/calls.csv?Status=busy&understudy.columns=duration%2Csid&understudy.sort=-duration", viewertest.All)
	records, err = csv.NewReader(strings.NewReader(body)).ReadAll()
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, len(records)-1, doc.Count, "len(records)-1")
	checktest.True(t, slices.Equal(records[0], []string{"duration", "sid"}), "records[0] is %v", records[0])
	h.Viewer.Visitor.Options.Search = failing{h.Viewer.Visitor.Options.Search}
	_, body, _ = h.Get("/search.jsonl?q=kind%3Amessages", viewertest.All)
	if !strings.Contains(body, `{"understudy.incomplete":"the remaining rows could not be read; export again","understudy.rows":500}`) {
		t.Errorf("ends %q", body[max(0, len(body)-100):])
	}
}

// failing finds the first page alone.
type failing struct{ page.Search }

func (f failing) Find(ctx context.Context, c understudy.Caller, a query.SearchRequest) (*query.SearchResult, error) {
	if a.Cursor != "" {
		return nil, context.DeadlineExceeded
	}
	return f.Search.Find(ctx, c, a)
}
