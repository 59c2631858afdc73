// Docs: the table of docs/reference/access.md says what the gate does.

package access

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestTheTableInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/access.md")
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case cells[0] == "rules":
			columns = cells[1:]
		case columns == nil || strings.HasPrefix(cells[0], "---"):
		case len(cells) != len(columns)+1:
			columns = nil
		default:
			rows++
			var rules map[string]string
			if err := yaml.Unmarshal([]byte("{"+cells[0]+"}"), &rules); err != nil {
				t.Fatalf("%s: %v", cells[0], err)
			}
			g := gate(t, Roles{"r": {"twilio": rules}})
			for i, subject := range columns {
				kind, field, _ := strings.Cut(subject, ".")
				if got := g.Level(as("r"), "twilio", kind, field).String(); got != cells[i+1] {
					t.Errorf("{%s}: %s is %s, the table says %s", cells[0], subject, got, cells[i+1])
				}
			}
		}
	}
	if rows < 7 {
		t.Errorf("only %d rows found", rows)
	}
}
