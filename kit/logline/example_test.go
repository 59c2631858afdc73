package logline_test

import (
	"log/slog"
	"os"
	"time"

	"understudy/kit/logline"
)

// The names of fields, encoded once.
var (
	kind = logline.NewKey("kind")
	took = logline.NewKey("took")
)

func Example() {
	levels := &logline.Levels{}
	h, now := logline.New(os.Stdout, logline.Options{Levels: levels}), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	_ = h.Begin(now, slog.LevelInfo, "job ended").String(kind, "nightly import").Duration(took, 1500*time.Millisecond).Write()

	log := slog.New(h).With("source", "shop") // for packages that take a *slog.Logger
	levels.Set(slog.LevelWarn, map[string]slog.Level{"store": slog.LevelDebug})
	log.Info("nobody sees this, because this package is not store")

	h.SetFormat(logline.JSON)
	_ = h.Begin(now, slog.LevelError, "disk full\nor not").Attr(slog.Group("disk", slog.Int("free", 0))).Write()
	// Output:
	// time=2026-01-02T03:04:05.000Z level=INFO msg="job ended" kind="nightly import" took=1.5s
	// {"time":"2026-01-02T03:04:05.000Z","level":"ERROR","msg":"disk full\nor not","disk":{"free":0}}
}
