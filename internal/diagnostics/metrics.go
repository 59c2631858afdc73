// This file writes the figures of /-/stats in the text format of Prometheus.

package diagnostics

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

//go:embed metrics.txt
var metricsText string

// MetricsPath is the path of the metrics.
const MetricsPath = "/-/metrics"

const (
	metricsTimeout = 5 * time.Second // half of the time that Prometheus waits by default
	maxSeries      = 9_999           // the maximum number of series in an answer; one more says how many are missing
)

// metric is a row of metrics.txt, which explains its columns.
type metric struct {
	name, kind string
	path       []string // where the values are in the JSON of a Snapshot
	help       string
}

// metrics are the rows of metrics.txt.
var metrics = func() (all []metric) {
	for line := range strings.Lines(metricsText) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); line[0] != '#' && len(cells) == 4 {
			all = append(all, metric{cells[0], cells[1], strings.Split(cells[2], "."), cells[3]})
		}
	}
	return all
}()

// typeName returns the type of the metric in Prometheus.
func (m *metric) typeName() string {
	if m.kind == "counter" {
		return m.kind
	}
	return "gauge"
}

// authorizeMetrics allows credentials for metrics, callers who see everything, and commands.
func (d *Diagnostics) authorizeMetrics(r *http.Request) (understudy.Caller, error) {
	if c, err := jsonapi.AuthorizeCommand(d.o.Token)(r); err == nil {
		return c, nil
	}
	c, err := d.o.Program(r)
	if err == nil && c.Grant.Service != understudy.ServiceMetrics && !d.o.SeesAll(c) {
		err = fmt.Errorf("%w: this needs a credential with allow: metrics, or the role %s", understudy.ErrForbidden, understudy.RoleAll)
	}
	return c, err
}

// Metrics returns a handler for MetricsPath that answers the callers for whom identify returns no error. While the store
// cannot be read, the answer contains only what is counted in memory.
func (d *Diagnostics) Metrics(identify func(*http.Request) (understudy.Caller, error)) http.Handler {
	api := &jsonapi.Options{Identify: identify}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+MetricsPath, func(w http.ResponseWriter, r *http.Request) {
		if _, err := identify(r); err != nil {
			api.Refuse(w, r, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), metricsTimeout)
		defer cancel()
		s, err := d.o.Snapshot(ctx)
		if err != nil {
			d.logUnreadable(ctx, err)
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(writeMetrics(&s, err == nil)) // an error only means that the client has left
	})
	return mux
}

// stored are the members of a Snapshot that are missing or 0 while the store cannot be read.
var stored = []string{"store", "jobs", "erasing"}

// writeMetrics returns the metrics of a snapshot.
func writeMetrics(s *Snapshot, readable bool) []byte {
	root := map[string]any{}
	text, _ := json.Marshal(s)      // no error, because every member can be encoded
	_ = json.Unmarshal(text, &root) // no error, because the text is JSON
	if !readable {
		maps.DeleteFunc(root, func(name string, _ any) bool { return slices.Contains(stored, name) })
	}
	root["readable"] = readable
	var out []byte
	series := 0
	for i, m := range metrics {
		isLast := i == len(metrics)-1
		root["dropped"] = float64(max(0, series-maxSeries))
		head := fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.typeName())
		m.walk(root, m.path, "", func(labels string, v any) {
			x, ok := m.value(v)
			if !ok {
				return
			}
			if series++; series > maxSeries && !isLast {
				return
			}
			if labels != "" {
				labels = "{" + labels[1:] + "}"
			}
			out = fmt.Appendf(out, "%s%s%s %s\n", head, m.name, labels, strconv.FormatFloat(x, 'f', -1, 64))
			head = ""
		})
	}
	return out
}

// walk calls add with each value below v that a path leads to, and with the labels of the value, each with a comma before
// it. A missing value is nil.
func (m *metric) walk(v any, path []string, labels string, add func(labels string, v any)) {
	if len(path) == 0 {
		add(labels, v)
		return
	}
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	word, choices, isChosen := strings.Cut(path[0], "=")
	name, list, isList := strings.Cut(strings.TrimSuffix(word, "]"), "[")
	switch {
	case isList:
		entries, _ := object[name].([]any)
		for _, entry := range entries {
			all := labels
			for member := range strings.SplitSeq(list, ",") {
				text, _ := entry.(map[string]any)[strings.ToLower(member)].(string)
				all += label(member, text)
			}
			m.walk(entry, path[1:], all, add)
		}
	case isChosen:
		for key := range strings.SplitSeq(choices, "+") {
			m.walk(object[key], path[1:], labels+label(word, key), add)
		}
	case word == strings.ToUpper(word):
		for _, key := range slices.Sorted(maps.Keys(object)) {
			m.walk(object[key], path[1:], labels+label(word, key), add)
		}
	default:
		m.walk(object[word], path[1:], labels, add)
	}
}

// label returns a label with a comma before it.
func label(word, value string) string {
	return "," + strings.ToLower(word) + `="` + escapeLabel.Replace(value) + `"`
}

// escapeLabel escapes the value of a label.
var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// value returns the value of a figure in the unit of the metric. ok is false if the metric has no series for it.
func (m *metric) value(v any) (x float64, ok bool) {
	switch v := v.(type) {
	case float64:
		unit, last := 1.0, m.path[len(m.path)-1]
		switch {
		case strings.HasSuffix(last, "_ms"):
			unit = 1e3
		case strings.HasSuffix(last, "_us"):
			unit = 1e6
		}
		return v / unit, true
	case bool:
		return oneIf(v), true
	case string:
		if m.kind == "state" {
			return oneIf(v == "ok"), true
		}
		at, err := understudy.ParseTime(v, time.UTC, time.RFC3339Nano)
		return float64(at.UnixMilli()) / 1000, err == nil
	}
	return oneIf(m.kind == "state"), m.kind != "optional"
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
