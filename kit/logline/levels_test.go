package logline

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

func TestLevelsByPackage(t *testing.T) {
	var out bytes.Buffer
	levels := &Levels{}
	h := New(&out, Options{Levels: levels})
	log := slog.New(h)
	for _, c := range []struct {
		level    slog.Level
		packages map[string]slog.Level
		want     string
	}{
		{slog.LevelInfo, nil, "info warn info"},
		{slog.LevelWarn, nil, "warn"},
		{slog.LevelWarn, map[string]slog.Level{"logline": slog.LevelDebug}, "debug info warn"},
		{slog.LevelDebug, map[string]slog.Level{"kit": slog.LevelWarn}, "warn debug info"},
		{slog.LevelError, map[string]slog.Level{"kit": slog.LevelDebug, "kit/logline": slog.LevelInfo}, "info warn"},
		{slog.LevelInfo, map[string]slog.Level{"logli": slog.LevelError, "line": slog.LevelDebug}, "info warn info"},
	} {
		levels.Set(c.level, c.packages)
		out.Reset()
		log.Debug("debug")
		log.Info("info")
		log.Warn("warn")
		_ = h.Begin(start, slog.LevelDebug, "debug").Write() // has no package
		_ = h.Begin(start, slog.LevelInfo, "info").Write()
		got := strings.Join(regexp.MustCompile(`debug|info|warn`).FindAllString(out.String(), -1), " ")
		if got != c.want {
			t.Errorf("%v %v: wrote %q, want %q", c.level, c.packages, got, c.want)
		}
	}
}

func TestLevelOfPackage(t *testing.T) {
	levels := &Levels{}
	levels.Set(slog.LevelInfo, map[string]slog.Level{"mirror": 1, "media": 2, "store": 3, "internal/store": 5, "store/kv": 4})
	r := levels.loadRules()
	for function, want := range map[string]slog.Level{
		"example.com/x/mirror.(*Mirror).Get": 1, "example.com/x/mirror/media.Open.func1": 1, "x/media.Open": 2,
		"x/internal/store/files.init": 5,
		"x/other/store.Open":          3, "x/other/store/kv.(*Table).Get": 4, "x/internal/store/kv.Get": 5, "x/mirrors.Get": 0,
		"main.main":  0,
		"x/a.mirror": 0, "": 0,
	} {
		if got := r.levelOf(function); got != want {
			t.Errorf("%s has level %d, want %d", function, got, want)
		}
	}
}
