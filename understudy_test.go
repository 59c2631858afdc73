package understudy_test

import (
	"log/slog"
	"testing"
	"time"

	"understudy"
)

func TestDefaultsAreSetWhereNoneWasGiven(t *testing.T) {
	var logger *slog.Logger
	var now func() time.Time
	understudy.SetDefaults(&logger, &now)
	if logger == nil || now == nil {
		t.Fatalf("logger %v, a clock: %v", logger, now != nil)
	}
	given, noon := logger, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	now = func() time.Time { return noon }
	understudy.SetDefaults(&logger, &now)
	if logger != given {
		t.Error("a logger that was given was replaced")
	}
	if !now().Equal(noon) {
		t.Error("a clock that was given was replaced")
	}
	understudy.SetDefaults(nil, nil)
}
