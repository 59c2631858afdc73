// Exports of what a search found: their fields, and whether they say that something is missing.

package viewer

import (
	"context"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
)

// An export of one kind, by its form, a condition or a narrowed search, has that kind's fields; one of several kinds has what
// they share, and codes with their meaning. Each role has the fields that it sees, as it sees them.
func TestExportOfASearchHasTheFieldsOfItsKinds(t *testing.T) {
	h := open(t, searched(t))
	for path, names := range map[string][]string{
		"?q=status%3Afailed":                                  {"status", "error_code", "from", "to"},
		"?q=status%3Afailed&kind=messages":                    {"status", "error_code", "to", "num_media", "body"},
		"?q=kind%3Amessages+status%3Afailed":                  {"status", "error_code", "to", "num_media", "body"},
		"?q=status%3Afailed&narrow=kind%3Amessages":           {"status", "error_code", "to", "num_media", "body"},
		"?q=status%3Afailed+OR+kind%3Amessages":               {"status", "error_code", "from", "to"},
		"?q=status%3Afailed+-%28kind%3Acalls+no%3Adirection)": {"status", "error_code", "from", "to"},
	} {
		for who, hidden := range map[string]string{"alltoken": "", "supporttoken": "body"} {
			table, err := csv.NewReader(strings.NewReader(h.page("/search.csv"+path, as{token: who}))).ReadAll()
			must(t, err)
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
			if cell(row, "status") == "" || cell(row, "time") == "" || cell(row, "meaning") != "Landline, or carrier unreachable" {
				t.Errorf("%s %s: %q", who, path, table[row])
			}
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
		r.Unheld = "not all are held"
	}
	return r, err
}

// Picked records are all that was asked for when each of them came, whatever else is not held.
func TestExportOfPickedRecordsIsCompleteWhenAllCame(t *testing.T) {
	h := open(t, searched(t))
	table, err := csv.NewReader(strings.NewReader(h.page("/search.csv?q=status%3Abusy", all))).ReadAll()
	must(t, err)
	one, two := table[1][2], table[2][2]
	h.viewer.Visitor.Options.Search = unheld{h.viewer.Visitor.Options.Search}
	for text, complete := range map[string]bool{
		"id:" + one + "," + two: true, "id:" + one + " OR id:" + two: true, "id:" + one + "," + one: true,
		"id:" + one + ",CA00000000000000000000000000000000": false, "id:" + one[:33] + "*": false, "status:busy": false,
	} {
		path := "/search.csv?q=" + strings.NewReplacer(" ", "+", ":", "%3A").Replace(text)
		if body := h.page(path, all); !strings.Contains(body, one) || strings.Contains(body, "# not complete") == complete {
			t.Errorf("%s: want complete %v: %.900s", text, complete, body)
		}
	}
}
