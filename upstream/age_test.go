package upstream

import (
	"net/http"
	"testing"
	"time"
)

// D14: what upstream's caches say of an answer's age is read, within bounds.
func TestInitialAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "100": 100 * time.Second, " 7 ": 7 * time.Second, "-5": 0, "+5": 0, "1.5": 0, "soon": 0, "1, 2": 0, "0x10": 0,
		"86399": 86399 * time.Second, "86401": 24 * time.Hour, "4294967296": 24 * time.Hour, "99999999999999999999999": 24 * time.Hour,
	} {
		if got := initialAge(http.Header{"Age": {text}}); got != want {
			t.Errorf("Age %q is %v, want %v", text, got, want)
		}
	}
	if got := initialAge(nil); got != 0 {
		t.Errorf("no header: %v", got)
	}
}
