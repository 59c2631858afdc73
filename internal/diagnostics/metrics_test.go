// Tests of the metrics, of their document, and of the rules and the dashboard that use them.

package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/request"
)

// TestMetricsAreFigures: each metric is a figure of /-/stats, and its name says the kind and the unit of the figure.
func TestMetricsAreFigures(t *testing.T) {
	figures := map[string]Figure{"readable": {Kind: "state"}, "dropped": {Kind: "gauge"}}
	for _, f := range Figures() {
		figures[f.Name] = f
	}
	rows := strings.Count(metricsText[strings.Index(metricsText, "\n\n")+2:], "\n")
	checktest.Equal(t, len(metrics), rows, "the number of metrics")
	names := map[string]bool{}
	for _, m := range metrics {
		if names[m.name] {
			t.Errorf("metrics.txt has %s twice", m.name)
		}
		names[m.name] = true
		for _, path := range pathsOf(m.path) {
			f, ok := figures[path]
			if !ok {
				t.Errorf("%s: /-/stats has no figure %s", m.name, path)
				continue
			}
			is := func(what string, is, want bool) {
				if is != want {
					t.Errorf("%s: %s is a %s in %q: %s %v, want %v", m.name, path, f.Kind, f.Unit, what, is, want)
				}
			}
			is("counter", m.kind == "counter", f.Kind == "counter")
			is("_total", strings.HasSuffix(m.name, "_total"), f.Kind == "counter")
			is("_timestamp_seconds", strings.HasSuffix(m.name, "_timestamp_seconds"), f.Kind == "time")
			is("_bytes", strings.HasSuffix(m.name, "_bytes"), f.Unit == "bytes" || m.name == "understudy_unread_bytes")
			is("_ms", strings.HasSuffix(path, "_ms"), f.Unit == "milliseconds")
			is("_us", strings.HasSuffix(path, "_us"), f.Unit == "microseconds")
			is("seconds", strings.Contains(m.name, "_seconds"), strings.HasSuffix(f.Unit, "seconds") || f.Kind == "time")
			is("_up", strings.HasSuffix(m.name, "_up"), m.kind == "state")
		}
		if !strings.HasPrefix(m.name, "understudy_") || !strings.HasSuffix(m.help, ".") || strings.Contains(m.help, `\`) {
			t.Errorf("%s: %q", m.name, m.help)
		}
	}
	checktest.Equal(t, metrics[len(metrics)-1].name, "understudy_dropped_series", "the last metric")
}

// pathsOf returns the names in figures.txt of the figures at a path.
func pathsOf(path []string) []string {
	all := []string{""}
	for _, part := range path {
		word, choices, isChosen := strings.Cut(part, "=")
		name, _, isList := strings.Cut(word, "[")
		var longer []string
		for _, before := range all {
			parts := []string{word}
			switch key := keyWords[before[strings.LastIndexByte(before, '.')+1:]]; {
			case key != "":
				parts = []string{key}
			case isList:
				parts = []string{name + "[]"}
			case isChosen:
				parts = strings.Split(choices, "+")
			}
			for _, p := range parts {
				longer = append(longer, strings.TrimPrefix(before+"."+p, "."))
			}
		}
		all = longer
	}
	return all
}

// busy is a snapshot with a few figures.
func busy() Snapshot {
	at := time.Date(2026, 6, 1, 12, 0, 0, 500e6, time.UTC)
	usage := func(warm, rejected int64) Credential {
		return Credential{Requests: map[string]int64{"warm": warm, "cold": 2, "other": 1, "rejected": rejected}}
	}
	limited := usage(7, 0)
	limited.Rate, limited.Left = new(int64(50)), new(int64(49))
	return Snapshot{
		Store: store.Space{File: 1 << 40, Trouble: "disk full"},
		Jobs:  jobs.Stats{Done: 3},
		Sources: map[string]Source{
			"web": {State: "ok", Kinds: map[string]Kind{"calls": {Records: 12, Complete: true, CaughtUpTo: at,
				Lists: []request.ListScore{{Path: "/Calls.json", Samples: 9, Differing: 1}}}, "sums": {}},
				Limits: map[string]request.Load{"queue": {Limit: 100, Now: 2, OldestMS: 1500}, "upstream": {}},
				Times:  []Times{{Kind: "calls", Reason: "waiting", Answers: 4, Whole: Spread{Sum: 2_500_500}}},
				Use: &Use{Traffic: Traffic{Warm: 5, Upstream: request.SentCounts{ByReason: request.ByReason{4, 1}}},
					Times:       map[string]Answered{"stored": {Answers: 5, Whole: Spread{Sum: 250}}},
					Credentials: map[string]Credential{"": usage(0, 4), `a "quoted\" name` + "\n": limited}}},
			"old": {State: "down", Why: "secret detail"},
		},
		Webhooks: []request.Webhook{{Name: "crm", Source: "web", State: "ok", Behind: 3}, {Name: "mail", Source: "web", State: "paused"}},
		Settings: Settings{LoadedAt: at},
	}
}

// seriesOf returns the lines of a metric without its name.
func seriesOf(text, name string) (all []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			all = append(all, strings.TrimSpace(strings.TrimPrefix(line, name)))
		}
	}
	return all
}

func TestMetricsOfASnapshot(t *testing.T) {
	s := busy()
	text := string(writeMetrics(&s, true))
	for name, want := range map[string][]string{
		"understudy_store_bytes":                       {"1099511627776"},
		"understudy_store_up":                          {"0"},
		"understudy_store_readable":                    {"1"},
		"understudy_source_up":                         {`{source="old"} 0`, `{source="web"} 1`},
		"understudy_settings_up":                       {"1"},
		"understudy_settings_loaded_timestamp_seconds": {"1780315200.5"},
		"understudy_erasing_since_timestamp_seconds":   nil,
		"understudy_audit_up":                          nil, // nothing is recorded
		"understudy_jobs_ended_total": {`{result="done"} 3`, `{result="failed"} 0`,
			`{result="cancelled"} 0`, `{result="expired"} 0`},
		"understudy_records":                           {`{source="web",kind="calls"} 12`, `{source="web",kind="sums"} 0`},
		"understudy_kind_complete":                     {`{source="web",kind="calls"} 1`, `{source="web",kind="sums"} 0`},
		"understudy_kind_caught_up_timestamp_seconds":  {`{source="web",kind="calls"} 1780315200.5`},
		"understudy_list_differing_samples_total":      {`{source="web",kind="calls",path="/Calls.json"} 1`},
		"understudy_queue_oldest_wait_seconds":         {`{source="web"} 1.5`},
		"understudy_upstream_answer_seconds_total":     {`{source="web",kind="calls",reason="waiting"} 2.5005`},
		"understudy_upstream_first_byte_seconds_total": {`{source="web",kind="calls",reason="waiting"} 0`},
		"understudy_answer_seconds_total":              {`{source="web",from="stored"} 0.00025`},
		"understudy_answers_total": {`{source="web",how="warm"} 5`, `{source="web",how="stale"} 0`,
			`{source="web",how="cold"} 0`, `{source="web",how="composed"} 0`},
		"understudy_webhook_up":             {`{source="web",name="crm"} 1`, `{source="web",name="mail"} 0`},
		"understudy_webhook_behind_changes": {`{source="web",name="crm"} 3`, `{source="web",name="mail"} 0`},
		"understudy_request_errors_total": {`{source="web",credential="",result="rejected"} 4`,
			`{source="web",credential="",result="failed"} 0`,
			`{source="web",credential="a \"quoted\\\" name\n",result="rejected"} 0`,
			`{source="web",credential="a \"quoted\\\" name\n",result="failed"} 0`},
		"understudy_credential_rate_left_requests": {`{source="web",credential="a \"quoted\\\" name\n"} 49`},
		"understudy_dropped_series":                {"0"},
	} {
		if got := seriesOf(text, name); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if strings.Contains(text, "secret detail") || strings.Contains(text, "disk full") {
		t.Error("a text of a state is shown")
	}
}

// metricsLine is what a line of the text format may be.
var metricsLine = regexp.MustCompile(`^(# HELP understudy_[a-z_]+ [^\\]+|# TYPE understudy_[a-z_]+ (counter|gauge)|` +
	`understudy_[a-z_]+(\{[a-z]+="([^"\\\n]|\\["\\n])*"(,[a-z]+="([^"\\\n]|\\["\\n])*")*\})? -?[0-9.]+)\n$`)

// TestMetricsOfAFullSnapshot: every metric has a series, every line has the form of the format, and no series is there twice.
func TestMetricsOfAFullSnapshot(t *testing.T) {
	var s Snapshot
	fill(reflect.ValueOf(&s).Elem())
	text := string(writeMetrics(&s, true))
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		if !metricsLine.MatchString(line) {
			t.Errorf("not a line of the format: %q", line)
		}
		name := line[:strings.LastIndexByte(line, ' ')]
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
	for _, m := range metrics {
		isChosen := strings.Contains(strings.Join(m.path, "."), "limits.") || strings.Contains(strings.Join(m.path, "."), "requests.")
		if len(seriesOf(text, m.name)) == 0 && !isChosen {
			t.Errorf("%s has no series", m.name)
		}
	}
}

// FuzzMetrics: no name of a credential, a kind or a webhook breaks the format or adds a series.
func FuzzMetrics(f *testing.F) {
	for _, name := range []string{"", "calls", `a"} 1`, "\n# HELP", `\`, "\xff", "Zürich", "understudy_up 1"} {
		f.Add(name)
	}
	plain := busy()
	want := strings.Count(string(writeMetrics(&plain, true)), "\n")
	f.Fuzz(func(t *testing.T, name string) {
		s := busy()
		src := s.Sources["web"]
		src.Kinds = map[string]Kind{name: src.Kinds["calls"], name + "s": {}}
		src.Use.Credentials = map[string]Credential{name: src.Use.Credentials[""], "a" + name: src.Use.Credentials["a \"quoted\\\" name\n"]}
		src.Times[0].Kind, s.Webhooks[0].Name = name, name
		s.Sources["web"] = src
		text := string(writeMetrics(&s, true))
		for line := range strings.Lines(text) {
			if !metricsLine.MatchString(line) {
				t.Errorf("not a line of the format: %q", line)
			}
		}
		if lines := strings.Count(text, "\n"); lines != want {
			t.Errorf("%d lines, want %d", lines, want)
		}
	})
}

func TestMetricsAreAtMostTenThousandSeries(t *testing.T) {
	s := busy()
	use := s.Sources["web"].Use
	for i := range 2000 {
		use.Credentials[fmt.Sprint("credential-", i)] = use.Credentials[""]
	}
	text := string(writeMetrics(&s, true))
	series := 0
	for line := range strings.Lines(text) {
		if line[0] != '#' {
			series++
		}
	}
	checktest.Equal(t, series, 10_000, "series")
	all := len(seriesOf(text, "understudy_requests_total")) + len(seriesOf(text, "understudy_request_errors_total")) +
		len(seriesOf(text, "understudy_credential_rate_requests")) + len(seriesOf(text, "understudy_credential_rate_left_requests"))
	checktest.Equal(t, strings.Join(seriesOf(text, "understudy_dropped_series"), " "), fmt.Sprint(2002*7+2-all), "series that are missing")
}

// While the store cannot be read, nothing says that it is empty.
func TestMetricsWithoutTheStore(t *testing.T) {
	s := busy()
	src := s.Sources["web"]
	src.Kinds = nil
	s.Sources["web"] = src
	h := New(Options{
		Snapshot: func(context.Context) (Snapshot, error) { return s, errors.New("disk on fire") },
		Program: func(*http.Request) (understudy.Caller, error) {
			return understudy.Caller{Grant: &understudy.Grant{Service: understudy.ServiceMetrics}}, nil
		},
	}).Handler()
	w := get(h, MetricsPath)
	text := w.Body.String()
	checktest.Equal(t, w.Code, 200, "status")
	checktest.Equal(t, strings.Join(seriesOf(text, "understudy_store_readable"), ""), "0", "readable")
	checktest.Equal(t, len(seriesOf(text, "understudy_answers_total")), 4, "answers")
	for _, name := range []string{"understudy_store_bytes", "understudy_store_up", "understudy_records", "understudy_jobs",
		"understudy_erasing_records"} {
		if got := seriesOf(text, name); got != nil {
			t.Errorf("%v", got)
		}
	}
}

func TestMetricsAreForTheirCredentialsAndTheRoleAll(t *testing.T) {
	for name, c := range map[string]struct {
		grant  understudy.Grant
		err    error
		status int
	}{
		"metrics": {understudy.Grant{Service: understudy.ServiceMetrics}, nil, 200},
		"jobs":    {understudy.Grant{Service: understudy.ServiceJobs}, nil, 403},
		"all":     {understudy.Grant{Role: understudy.RoleAll}, nil, 200},
		"support": {understudy.Grant{Role: "support"}, nil, 403},
		"nobody":  {understudy.Grant{}, understudy.ErrUnauthorized, 401},
	} {
		h := New(Options{
			Snapshot: func(context.Context) (Snapshot, error) { return busy(), nil },
			Program:  func(*http.Request) (understudy.Caller, error) { return understudy.Caller{Grant: &c.grant}, c.err },
		}).Handler()
		w := get(h, MetricsPath)
		checktest.Equal(t, w.Code, c.status, "%s: status", name)
		checktest.Equal(t, strings.Contains(w.Body.String(), "understudy_answers_total"), c.status == 200, "%s: has metrics", name)
		if c.status == 200 {
			checktest.Equal(t, w.Header().Get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8", "%s: content type", name)
		}
		post := httptest.NewRecorder()
		h.ServeHTTP(post, httptest.NewRequest("POST", MetricsPath, nil))
		checktest.Equal(t, post.Code, 405, "%s: POST", name)
	}
}

// TestMetricsDocument compares the table of docs/reference/metrics.md with metrics.txt; -update writes it.
func TestMetricsDocument(t *testing.T) {
	const document, head = "../../docs/reference/metrics.md", "| metric | type | labels | what it is |\n|---|---|---|---|\n"
	data, err := os.ReadFile(document)
	checktest.MustNoError(t, err, "read the document")
	before, rest, found := strings.Cut(string(data), head)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("%s has no table of metrics", document)
	}
	var rows strings.Builder
	for _, m := range metrics {
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", m.name, m.typeName(), strings.Join(labelsOf(m.path), ", "),
			strings.TrimSuffix(m.help, "."))
	}
	want := before + head + strings.ReplaceAll(rows.String(), "|  |", "| |") + "\n" + after
	if *update {
		checktest.NoError(t, os.WriteFile(document, []byte(want), 0o600), "write the document")
		return
	}
	if string(data) != want {
		t.Errorf("%s is not what metrics.txt says: go test ./internal/diagnostics -run TestMetricsDocument -update", document)
	}
}

// labelWord is a word of a path that becomes a label.
var labelWord = regexp.MustCompile(`\b[A-Z]+\b`)

// labelsOf returns the labels of the metric at a path.
func labelsOf(path []string) (labels []string) {
	for _, word := range labelWord.FindAllString(strings.Join(path, "."), -1) {
		labels = append(labels, strings.ToLower(word))
	}
	return labels
}

// metricName is a name of a metric in the rules and the dashboard, with the selector behind it.
var metricName = regexp.MustCompile(`(understudy_[a-z_]+)(?:\{([^}]*)\})?`)

// selected is a label in a selector or in a template.
var selected = regexp.MustCompile(`([a-z_]+)(?:=|!)`)

// TestRulesAndDashboardUseRealMetrics finds every metric and label that deploy/monitoring uses in metrics.txt.
func TestRulesAndDashboardUseRealMetrics(t *testing.T) {
	known, labels := map[string]bool{}, map[string][]string{}
	for _, m := range metrics {
		known[m.name], labels[m.name] = true, append(labelsOf(m.path), "instance")
	}
	for file, atLeast := range map[string]int{"alerts.yml": 15, "dashboard.json": 25} {
		data, err := os.ReadFile("../../deploy/monitoring/" + file)
		checktest.MustNoError(t, err, "read the file")
		used := map[string]bool{}
		for _, found := range metricName.FindAllStringSubmatch(strings.ReplaceAll(string(data), `\"`, `"`), -1) {
			name, selector := found[1], found[2]
			used[name] = true
			if !known[name] {
				t.Errorf("%s uses %s, which is no metric", file, name)
			}
			for _, label := range selected.FindAllStringSubmatch(selector, -1) {
				if !slices.Contains(labels[name], label[1]) {
					t.Errorf("%s: %s has no label %s", file, name, label[1])
				}
			}
		}
		if len(used) < atLeast {
			t.Errorf("%s uses only %d metrics", file, len(used))
		}
	}
}
