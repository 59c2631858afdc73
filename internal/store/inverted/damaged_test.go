package inverted

import (
	"testing"

	"understudy/internal/store/db"
	"understudy/internal/store/sqlite"
)

// A level that no file can have is damage, and not that many levels to look through.
func TestLevelBeyondAllIsDamage(t *testing.T) {
	c, err := sqlite.Dial(t.Context(), t.TempDir()+"/x.db", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, level := range []string{"-1", "41", "9223372036854775807"} {
		if err := c.ExecuteOnce("CREATE TABLE IF NOT EXISTS term_run (number INTEGER PRIMARY KEY, level, target)"); err != nil {
			t.Fatal(err)
		}
		if err := c.ExecuteOnce("INSERT OR REPLACE INTO term_run VALUES (1, " + level + ", 0)"); err != nil {
			t.Fatal(err)
		}
		if _, err := readRuns(c); !db.IsDamaged(err) {
			t.Errorf("level %s: %v", level, err)
		}
	}
}
