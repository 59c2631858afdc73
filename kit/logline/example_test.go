package logline_test

import (
	"log/slog"
	"os"
	"time"

	"understudy/kit/logline"
)

func Example() {
	levels := &logline.Levels{}
	h, now := logline.New(os.Stdout, logline.Options{Levels: levels}), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	_ = h.Log(now, slog.LevelInfo, "job ended", slog.String("kind", "nightly import"), slog.Duration("took", 1500*time.Millisecond))

	log := slog.New(h).With("source", "shop") // for packages that take a *slog.Logger
	levels.Set(slog.LevelWarn, map[string]slog.Level{"store": slog.LevelDebug})
	log.Info("nobody sees this, because this package is not store")

	h.SetFormat(logline.JSON)
	_ = h.Log(now, slog.LevelError, "disk full\nor not", slog.Group("disk", slog.Int("free", 0)))
	// Output:
	// time=2026-01-02T03:04:05.000Z level=INFO msg="job ended" kind="nightly import" took=1.5s
	// {"time":"2026-01-02T03:04:05.000Z","level":"ERROR","msg":"disk full\nor not","disk":{"free":0}}
}
