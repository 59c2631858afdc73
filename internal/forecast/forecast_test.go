// Forecasts: when a sample is taken, what is said of samples, and what is told once.

package forecast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/kit/touch"
	"understudy/request"
	"understudy/spec"
)

var series = understudy.Series{Source: "acme", Kind: "balance", Field: "left"}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// acme is a source with a balance that is sampled each hour.
func acme(t testing.TB) *spec.Source {
	t.Helper()
	sp := &spec.Spec{Name: "acme", Title: "Acme", Hosts: []spec.Host{{URL: "https://acme.example"}}, Auth: spec.Auth{Style: "none"}}
	sp.Kinds = []*spec.Kind{
		{Name: "balance", Instances: []*spec.Instance{{Path: "/balance"}},
			Fields: []*spec.Field{{Name: "left", Type: spec.TypeDecimal, Class: spec.ClassPrice, Sample: "1h", Unit: "currency"},
				{Name: "currency"}, {Name: "note"}}},
		{Name: "things", ID: []string{"id"}, Lists: []*spec.List{{Path: "/things"}}, Fields: []*spec.Field{{Name: "id"}}},
	}
	must(t, sp.Compile())
	return &spec.Source{Name: "acme", Spec: sp}
}

// upstream is a mirror that fetches at once, or fails.
type upstream struct {
	mu    sync.Mutex // of what follows, and of what value uses
	value func() string
	asked []time.Time
	err   error
}

func (u *upstream) Fill(_ context.Context, f request.Fill) (request.PageSaved, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, time.Now())
	if u.err != nil {
		return request.PageSaved{}, u.err
	}
	return request.PageSaved{Page: u.page(f.Target.Key)}, nil
}

func (u *upstream) page(key understudy.Key) *understudy.Page {
	return &understudy.Page{Key: key, Kind: "balance", Status: 200, At: time.Now(),
		Body: []byte(`{"note":"x","currency":"EUR","left":` + u.value() + `}`)}
}

// world is what a test samples.
type world struct {
	*Forecasts
	up   *upstream
	db   *store.DB
	told []AlertNotice
	stop func()
}

func begin(t *testing.T, path string, value func() string) *world {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path})
	must(t, err)
	w := &world{up: &upstream{value: value}, db: db}
	w.Forecasts, err = New(Options{Sources: []*spec.Source{acme(t)}, Store: db.Series, KV: db.KV, Mirror: w.up, Now: time.Now,
		Enqueue: func(_ context.Context, jobs ...understudy.Job) ([]int64, error) {
			var one AlertNotice
			err := json.Unmarshal(jobs[0].Payload, &one)
			w.hold(func() { w.told = append(w.told, one) })
			return nil, err
		}})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.stop = func() {
		cancel()
		must(t, <-ended)
		must(t, db.Close())
	}
	return w
}

// hold runs what reads or sets what the sampler uses.
func (w *world) hold(do func()) {
	w.up.mu.Lock()
	defer w.up.mu.Unlock()
	do()
}

// asked is how many fetches there were.
func (w *world) asked() (n int) {
	synctest.Wait()
	w.hold(func() { n = len(w.up.asked) })
	return n
}

// alerted is what was told.
func (w *world) alerted() (told []AlertNotice) {
	synctest.Wait()
	w.hold(func() { told = slices.Clone(w.told) })
	return told
}

func (w *world) samples(t *testing.T) []understudy.Sample {
	t.Helper()
	all, err := w.db.Series.ReadSamples(t.Context(), series)
	must(t, err)
	return all
}

// TestOneSampleAnInterval: a fetch an hour makes a sample; what readers bring meanwhile
// makes none, and in place of the fetch one; a restart asks nothing anew.
func TestOneSampleAnInterval(t *testing.T) {
	path := storetest.File(t)
	synctest.Test(t, func(t *testing.T) {
		n := 100
		value := func() string { n--; return fmt.Sprintf("%q", fmt.Sprintf("%d.50", n)) }
		w := begin(t, path, value)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if w.asked() != 0 {
			t.Error("a fetch at the start")
		}
		time.Sleep(5*time.Hour + 2*time.Second)
		synctest.Wait()
		{
			got := w.samples(t)
			checktest.MustEqual(t, len(got), 6, "after five hours: len(got)")
			checktest.MustEqual(t, got[0].Value, "99.50", "after five hours: got[0].Value")
			checktest.MustEqual(t, got[5].Value, "94.50", "after five hours: got[5].Value")
		}
		key := understudy.Key{Source: "acme", URI: "/balance"}
		for range 30 { // a reader, every minute
			time.Sleep(time.Minute)
			w.hold(func() { w.EnqueuePage(w.up.page(key)) })
			synctest.Wait()
		}
		if got := w.samples(t); len(got) != 6 || w.asked() != 6 {
			t.Errorf("with readers: %d samples, %d fetches", len(got), w.asked())
		}
		w.hold(func() { w.EnqueuePage(w.up.page(understudy.Key{Source: "acme", URI: "/balance?x=1"})) }) // another page of the kind
		w.stop()
		time.Sleep(10 * time.Minute)
		w = begin(t, path, value)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if w.asked() != 0 {
			t.Error("a restart asks for a sample that is there")
		}
		if unit := w.Unit(t.Context(), series); unit != "EUR" {
			t.Errorf("after the restart the unit is %q", unit)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := w.samples(t); len(got) != 7 || w.asked() != 1 {
			t.Errorf("after the restart: %d samples, %d fetches", len(got), w.asked())
		}
		{
			samples, err := w.Forget(t.Context(), key)
			checktest.Equal(t, samples, 7, "erased: samples; %v", err)
			checktest.MustNoError(t, err, "erased")
			checktest.Equal(t, w.Unit(t.Context(), series), "", "erased: w.Unit(t.Context(), series)")
		}
		w.stop()
	})
}

// TestFailuresAreTriedAgain, not too soon, and numbers that are none are no samples.
func TestFailuresAreTriedAgain(t *testing.T) {
	path := storetest.File(t)
	synctest.Test(t, func(t *testing.T) {
		value := `null`
		w := begin(t, path, func() string { return value })
		w.hold(func() { w.up.err = errors.New("down") })
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if n := w.asked(); n < 9 || n > 11 {
			t.Errorf("%d tries in an hour", n)
		}
		for _, odd := range []string{`null`, `"much"`, `{"a":1}`, `true`, `""`} {
			w.hold(func() { w.up.err, value = nil, odd })
			time.Sleep(12 * time.Minute)
		}
		synctest.Wait()
		if got := w.samples(t); len(got) != 0 {
			t.Errorf("%v", got)
		}
		w.hold(func() { value = `-3.20` })
		time.Sleep(12 * time.Minute)
		synctest.Wait()
		if got := w.samples(t); len(got) != 1 || got[0].Value != "-3.20" {
			t.Errorf("%v", got)
		}
		w.stop()
	})
}

// TestAnAlertIsToldOnce, and once more after the probability fell.
func TestAnAlertIsToldOnce(t *testing.T) {
	path := storetest.File(t)
	synctest.Test(t, func(t *testing.T) {
		left, each := 80.0, 2.0
		value := func() string { left -= each + 0.2*rand.Float64(); return fmt.Sprintf("%.2f", left) }
		w := begin(t, path, value)
		q, err := NewQuestion(series, "", "1d", "0.5")
		must(t, err)
		alert := Alert{q, "money"}
		w.SetAlerts([]Alert{alert})
		now := func() (is float64) { w.hold(func() { is = left }); return is }
		for now() > 5 && len(w.alerted()) == 0 {
			time.Sleep(time.Hour)
		}
		told := w.alerted()
		checktest.MustEqual(t, len(told), 1, "len(told)")
		checktest.MustEqual(t, len(w.samples(t)), minSteps+1, "len(w.samples(t))")
		checktest.MustTrue(t, told[0].Forecast.Probability.Figure >= 0.5,
			"told[0].Forecast.Probability.Figure is %v, want >= 0.5", told[0].Forecast.Probability.Figure)
		checktest.MustTrue(t, told[0].Forecast.Need != nil, "told[0].Forecast.Need is nil")
		checktest.MustEqual(t, told[0].Webhook, "money", "told[0].Webhook")
		time.Sleep(2 * time.Hour)
		w.stop()
		first := told[0].Key
		w = begin(t, path, value)
		w.SetAlerts([]Alert{alert})
		time.Sleep(3 * time.Hour)
		if len(w.alerted()) != 0 {
			t.Fatal("it is told again after a restart")
		}
		w.hold(func() { left += 60 }) // paid in
		time.Sleep(2 * time.Hour)
		for now() > 5 && len(w.alerted()) == 0 {
			time.Sleep(time.Hour)
		}
		if told = w.alerted(); len(told) != 1 || told[0].Key == first {
			t.Errorf("after more was paid in: %d told", len(told))
		}
		w.stop()
	})
}

// Two processes may find at the same time that an alert is due. Then the second may add the job when that of the first has ended.
func TestAnAlertThatTwoProcessesFindIsSentOnce(t *testing.T) {
	t.Parallel()
	a, b := storetest.OpenTwo(t)
	var sent []string
	send := func(_ context.Context, _, _, key string, _ any) error { sent = append(sent, key); return nil }
	q, err := NewQuestion(series, "", "1d", "0.5")
	must(t, err)
	alert := Alert{q, "money"}
	for _, next := range []struct {
		db     *store.DB
		number int
	}{{a, 0}, {b, 0}, {b, 1}, {a, 1}} {
		f, err := New(Options{Sources: []*spec.Source{acme(t)}, Store: next.db.Series, KV: next.db.KV, Mirror: &upstream{}, Now: time.Now})
		must(t, err)
		f.SetAlerts([]Alert{alert})
		ctx, cancel := context.WithTimeout(t.Context(), storetest.Patience)
		kind := f.JobKind(send)
		run := kind.Run
		kind.Run = func(ctx context.Context, r *jobs.Run) error {
			defer cancel()
			return run(ctx, r)
		}
		r, err := jobs.New(jobs.Options{Store: next.db.Jobs, Kinds: []jobs.Kind{kind}})
		must(t, err)
		notice := AlertNotice{fmt.Sprintf("%s, %d", alert.name(), next.number), alert.Webhook, &Forecast{Of: series.String()}}
		payload, err := json.Marshal(notice)
		must(t, err)
		_, err = r.Enqueue(t.Context(), understudy.Job{Kind: alertJobKind, Payload: payload})
		must(t, err)
		must(t, r.Run(ctx))
		checktest.Equal(t, r.Stats().Done, 1, "jobs that are done")
	}
	checktest.Equal(t, strings.Join(sent, " | "), alert.name()+", 0 | "+alert.name()+", 1", "notices")
}

// walk makes samples of a walk, one an hour.
func walk(rnd *rand.Rand, from float64, w touch.Walk, n int) (all []understudy.Sample) {
	at, value := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), from
	for range n {
		all = append(all, understudy.Sample{At: at, Value: fmt.Sprintf("%.5f", value)})
		at = at.Add(time.Hour)
		value += w.Drift/24 + w.Sigma*math.Sqrt(1.0/24)*rnd.NormFloat64()
	}
	return all
}

func question(t *testing.T, level, by, percent string) Question {
	t.Helper()
	q, err := NewQuestion(series, level, by, percent)
	must(t, err)
	return q
}

// TestTooLittleHistoryIsNoNumber: few samples, a short time, or no move at all.
func TestTooLittleHistoryIsNoNumber(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	still := walk(rnd, 10, touch.Walk{}, 100)
	for name, c := range map[string]struct {
		samples []understudy.Sample
		by, why string
	}{
		"none": {nil, "", "there is no sample yet"},
		"24":   {walk(rnd, 100, touch.Walk{Drift: -1, Sigma: 1}, 24), "1d", "a forecast needs 25 samples, and has 24"},
		"a day": {walk(rnd, 100, touch.Walk{Drift: -1, Sigma: 1}, 25), "60d",
			"the samples cover 24 h; to look 60 d ahead they must cover 2 d"},
		"no move":    {still, "", "the number has not moved"},
		"no numbers": {[]understudy.Sample{{At: time.Unix(1, 0), Value: "x"}}, "", "there is no sample yet"},
	} {
		f := estimate(question(t, "", c.by, ""), c.samples, time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC))
		checktest.Equal(t, f.State, NotYet, "%s: f.State", name)
		checktest.Equal(t, f.Why, c.why, "%s: f.Why", name)
		checktest.MustTrue(t, f.Probability == nil, "%s: f.Probability is %v", name, f.Probability)
		checktest.MustTrue(t, f.Dates == nil, "%s: f.Dates is %v", name, f.Dates)
		checktest.True(t, f.Need == nil, "%s: f.Need is %v", name, f.Need)
	}
}

// TestTheFiguresAreThoseOfTheWalk: of a long history the estimate is near the truth, the
// dates and the need fit together, and the same samples give the same answer.
func TestTheFiguresAreThoseOfTheWalk(t *testing.T) {
	truth := touch.Walk{Drift: -2, Sigma: 3}
	samples := walk(rand.New(rand.NewPCG(7, 7)), 2100, truth, 10_000)
	value := pointsOf(samples)[len(samples)-1].Value
	level := fmt.Sprintf("%.2f", value-40)
	q, now := question(t, level, "20d", "0.9"), samples[len(samples)-1].At
	f := estimate(q, samples, now)
	want := truth.Probability(value, q.levelNumber(), 20)
	checktest.Equal(t, f.State, Ready, "f.State")
	checktest.True(t, math.Abs(f.Probability.Figure-want) <= 0.15,
		"math.Abs(f.Probability.Figure-want) is %v, want <= 0.15", math.Abs(f.Probability.Figure-want))
	checktest.True(t, f.Probability.Low <= want, "f.Probability.Low is %v", f.Probability.Low)
	checktest.True(t, f.Probability.High >= want, "f.Probability.High is %v", f.Probability.High)
	checktest.True(t, math.Abs(f.Drift+2) <= 0.5, "math.Abs(f.Drift+2) is %v, want <= 0.5", math.Abs(f.Drift+2))
	checktest.True(t, math.Abs(f.Deviation-3) <= 0.15, "math.Abs(f.Deviation-3) is %v, want <= 0.15",
		math.Abs(f.Deviation-3))
	checktest.Equal(t, f.LeftOut, 0, "f.LeftOut")
	checktest.Equal(t, f.Samples, 10_000, "f.Samples")
	checktest.True(t, len(f.Line) <= maxPoints, "len(f.Line) is %v", len(f.Line))
	checktest.True(t, !f.Dates[0].At.After(*f.Dates[1].At), "dates: f.Dates[0].At.After(*f.Dates[1].At) is true")
	checktest.True(t, !f.Dates[0].Early.After(*f.Dates[0].At),
		"dates: f.Dates[0].Early.After(*f.Dates[0].At) is true")
	checktest.True(t, !f.Dates[0].Late.Before(*f.Dates[0].At),
		"dates: f.Dates[0].Late.Before(*f.Dates[0].At) is true")
	farther := question(t, fmt.Sprintf("%.4f", q.levelNumber()-f.Need.Figure), "20d", "0.9")
	if p := estimate(farther, samples, now).Probability.Figure; math.Abs(p-0.1) > 0.002 {
		t.Errorf("with what is needed the probability is %.4f, not 0.1", p)
	}
	say := func(f *Forecast) string { return fmt.Sprint(*f.Probability, *f.Need, f.Dates[0].At) }
	if again := estimate(q, samples, now); say(again) != say(f) {
		t.Error("the same samples give another answer")
	}
	if b := f.Backtest; b == nil || float64(b.Touched)/float64(b.Forecasts) < 0.6 {
		t.Errorf("back-test: %+v", b)
	}
}

// TestLookingBack: of numbers that wander as many levels were reached as was said.
func TestLookingBack(t *testing.T) {
	rnd, tried, reached := rand.New(rand.NewPCG(9, 9)), 0, 0
	for range 60 {
		samples := walk(rnd, 1000, touch.Walk{Drift: -2, Sigma: 3}, 600)
		f := estimate(question(t, "", "3d", "0.9"), samples, samples[len(samples)-1].At)
		tried, reached = tried+f.Backtest.Forecasts, reached+f.Backtest.Touched
	}
	share, off := float64(reached)/float64(tried), 3*math.Sqrt(0.9*0.1/float64(tried))
	if math.Abs(share-0.9) > off+0.02 {
		t.Errorf("%.3f of %d levels with 90 %% were reached", share, tried)
	}
}

// TestPaymentsAreLeftOut: a balance that is paid up now and then falls as one that is not.
func TestPaymentsAreLeftOut(t *testing.T) {
	samples := walk(rand.New(rand.NewPCG(3, 3)), 400, touch.Walk{Drift: -12, Sigma: 2}, 24*20)
	plain := estimate(question(t, "", "30d", ""), samples, samples[len(samples)-1].At)
	paid := slices.Clone(samples)
	for i := range paid {
		v := pointsOf(samples)[i].Value + float64(i/100)*50
		paid[i].Value = fmt.Sprintf("%.5f", v)
	}
	f := estimate(question(t, "", "30d", ""), paid, paid[len(paid)-1].At)
	checktest.Equal(t, f.LeftOut, 4, "f.LeftOut")
	checktest.True(t, math.Abs(f.Drift-plain.Drift) <= 0.3, "math.Abs(f.Drift-plain.Drift) is %v, want <= 0.3",
		math.Abs(f.Drift-plain.Drift))
	checktest.True(t, math.Abs(f.Deviation-plain.Deviation) <= 0.3,
		"math.Abs(f.Deviation-plain.Deviation) is %v, want <= 0.3", math.Abs(f.Deviation-plain.Deviation))
}

// TestALevelThatIsReached, from above and from below.
func TestALevelThatIsReached(t *testing.T) {
	down := walk(rand.New(rand.NewPCG(5, 5)), 30, touch.Walk{Drift: -2, Sigma: 0.1}, 24*20)
	up := walk(rand.New(rand.NewPCG(5, 5)), 10, touch.Walk{Drift: 2, Sigma: 0.1}, 24*20)
	for name, c := range map[string]struct {
		samples []understudy.Sample
		level   string
		state   string
	}{
		"below zero":           {down, "0", Reached},
		"not so low":           {down, "-30", Ready},
		"above":                {up, "45", Reached},
		"not so high":          {up, "60", Ready},
		"a level long passed":  {up, "10.5", Ready}, // it would have to come back
		"one it stands at":     {up[:100], up[99].Value, Reached},
		"one below that level": {up[:100], "500", Ready},
	} {
		if f := estimate(question(t, c.level, "10d", ""), c.samples, c.samples[len(c.samples)-1].At); f.State != c.state {
			t.Errorf("%s: %s, want %s", name, f.State, c.state)
		}
	}
}

// TestCoverage: of made-up balances the band of the probability holds the true one in
// about nine of ten.
func TestCoverage(t *testing.T) {
	rnd := rand.New(rand.NewPCG(sample.Seed(t), 9))
	n, held := sample.Count(60, 2000), 0
	truth := touch.Walk{Drift: -3, Sigma: 4}
	for range n {
		samples := walk(rnd, 500, truth, 24*14)
		value := pointsOf(samples)[len(samples)-1].Value
		q := question(t, fmt.Sprintf("%.3f", value-40), "10d", "")
		f := estimate(q, samples, samples[len(samples)-1].At)
		want := truth.Probability(value, q.levelNumber(), 10)
		if f.State != Ready {
			t.Fatalf("%+v", f)
		}
		if f.Probability.Low <= want && want <= f.Probability.High {
			held++
		}
	}
	if share, off := float64(held)/float64(n), 5*0.3/math.Sqrt(float64(n)); share < 0.85-off || share > 0.93+off {
		t.Errorf("the bands hold the truth in %.1f %% of %d", 100*share, n)
	}
}

func TestQuestions(t *testing.T) {
	for _, bad := range []url.Values{
		{"level": {"much"}}, {"level": {"NaN"}}, {"level": {"1e999"}}, {"level": {strings.Repeat("1", 41)}}, {"by": {"soon"}}, {"by": {"1s"}},
		{"by": {"4000d"}}, {"by": {"-3d"}}, {"by": {"NaNd"}}, {"percent": {"95"}}, {"percent": {"0"}}, {"percent": {"1"}}, {"percent": {"NaN"}},
	} {
		if _, err := ParseQuestion(series, bad); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for text, want := range map[string]time.Duration{"30d": 30 * day, "2w": 14 * day, "1.5d": 36 * time.Hour, "12h": 12 * time.Hour} {
		if got, err := ParseWithin(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add("acme/balance.left", "0", "30d", "0.95")
	f.Add("a/b.c.d", "-1.5e3", "2w", ".5")
	f.Fuzz(func(t *testing.T, name, level, by, percent string) {
		s, err := understudy.ParseSeries(name)
		if err == nil && s.String() != name {
			t.Errorf("%q is read as %q", name, s)
		}
		q, err := NewQuestion(s, level, by, percent)
		if err != nil {
			if !errors.Is(err, understudy.ErrInvalid) {
				t.Errorf("%v", err)
			}
			return
		}
		checktest.True(t, q.Within >= time.Hour, "q.Within is %v", q.Within)
		checktest.True(t, q.Within <= 3650*day, "q.Within is %v", q.Within)
		checktest.True(t, q.Percent > 0 && q.Percent < 1, "q.Percent > 0 && q.Percent < 1 is false")
		checktest.True(t, !math.IsNaN(q.levelNumber()), "math.IsNaN(q.level()) is true")
		checktest.True(t, !math.IsInf(q.levelNumber(), 0), "math.IsInf(q.level(), 0) is true")
	})
}
