// Tests of the counts of a day.

package lastday

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"understudy"
)

// values is a store of small values.
type values map[string][]byte

func (v values) Value(_ context.Context, name string) ([]byte, error) {
	if data, ok := v[name]; ok {
		return data, nil
	}
	return nil, understudy.ErrNotFound
}

func (v values) ReadValues(context.Context, string) (map[string][]byte, error) { return v, nil }

func (v values) SetValue(_ context.Context, name string, value []byte) error {
	v[name] = value
	return nil
}

func (v values) Change(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	value, err := change(v[name])
	if err == nil {
		v[name] = value
	}
	return err
}

// process is one that counts.
type process struct {
	days    *Days
	counted Counts
}

func begin(t *testing.T, kv values, now *time.Time) *process {
	p := &process{}
	p.days = New(t.Context(), Options{KV: kv, Sources: []string{"web"}, Read: func(string) Counts { return p.counted },
		Now: func() time.Time { return *now }, Log: slog.New(slog.DiscardHandler)})
	return p
}

// end ends a process in order.
func (p *process) end(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.days.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestCountsOfADayOutliveTheProcess(t *testing.T) {
	kv, now := values{}, time.Date(2026, 6, 1, 12, 50, 0, 0, time.UTC)
	check := func(what string, p *process, want Counts) {
		t.Helper()
		if got := p.days.Sum("web"); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	first := begin(t, kv, &now)
	check("at first", first, Counts{})
	first.counted = Counts{Warm: 5, Cold: 1, Readers: 1, Walks: 1, Upstream: 3}
	check("counted", first, first.counted)
	now = now.Add(20 * time.Minute) // the next hour
	first.counted.Warm = 7
	check("in two hours", first, first.counted)
	first.end(t)
	second := begin(t, kv, &now)
	check("after a restart", second, Counts{Warm: 7, Cold: 1, Readers: 1, Walks: 1, Upstream: 3})
	second.counted = Counts{Stale: 2, Composed: 1}
	check("and more", second, Counts{Warm: 7, Stale: 2, Cold: 1, Composed: 1, Readers: 1, Walks: 1, Upstream: 3})
	now = now.Add(23 * time.Hour) // the first hour began more than a day ago
	check("a day later", second, Counts{Warm: 2, Stale: 2, Composed: 1})
	second.end(t)
	now = now.Add(24 * time.Hour)
	check("when all is too old", begin(t, kv, &now), Counts{})
}

// Values that nobody wrote so begin anew, and are replaced.
func TestDamagedCountsBeginAnew(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{"", "null", "[]", `{"web":5}`, `{"web":null}`} {
		kv := values{valueName: []byte(text)}
		p := begin(t, kv, &now)
		p.counted.Warm = 1
		if got := p.days.Sum("web"); got != (Counts{Warm: 1}) {
			t.Errorf("%q: %+v", text, got)
		}
		p.end(t)
		if got := begin(t, kv, &now).days.Sum("web"); got != (Counts{Warm: 1}) {
			t.Errorf("%q, saved: %+v", text, got)
		}
	}
}

func TestCountsOfProcessesAreAdded(t *testing.T) {
	kv, now := values{}, time.Date(2026, 6, 1, 12, 50, 0, 0, time.UTC)
	a, b := begin(t, kv, &now), begin(t, kv, &now)
	a.counted.Warm, b.counted.Warm, b.counted.Cold = 5, 7, 1
	for _, p := range []*process{a, b, a, b} {
		p.days.save(t.Context())
	}
	b.counted.Warm++ // not saved yet
	for i, p := range []*process{a, b} {
		if got, want := p.days.Sum("web"), (Counts{Warm: int64(12 + i), Cold: 1}); got != want {
			t.Errorf("process %d: %+v, want %+v", i, got, want)
		}
	}
}
