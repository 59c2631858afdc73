// What requests and answers say about themselves.

package request

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

func TestOutcomeWords(t *testing.T) {
	for outcome, want := range map[Outcome]string{Warm: "warm", Stale: "stale", Cold: "cold", Composed: "composed", Composed + 1: "unknown"} {
		if got := outcome.String(); got != want {
			t.Errorf("outcome %d is %q, want %q", outcome, got, want)
		}
	}
}

func TestCurrentAgeCountsTheTimeInUpstreamsCaches(t *testing.T) {
	waited := &understudy.Page{InitialAge: time.Minute}
	for _, c := range []struct {
		response Response
		want     time.Duration
	}{
		{Response{Age: time.Second}, time.Second},
		{Response{Age: time.Second, Page: waited}, time.Minute + time.Second},
		{Response{Age: -time.Hour, Page: waited}, time.Minute}, // a clock that was set back
	} {
		if got := c.response.CurrentAge(); got != c.want {
			t.Errorf("%v on, the age is %v, want %v", c.response.Age, got, c.want)
		}
	}
}

func TestSpendingsAddUp(t *testing.T) {
	var all Spending
	one := Spending{ByReason: ByReason{ReasonWaiting: 2, ReasonPoll: 1}, ByCaller: map[string]int64{"ann": 2}, Failed: 1}
	for range 2 {
		all.Add(&one)
	}
	all.Add(&Spending{ByReason: ByReason{ReasonWaiting: 1}, ByCaller: map[string]int64{"": 1}})
	n := all.Requests()
	checktest.Equal(t, n, 7, "%d requests: n", n)
	checktest.Equal(t, all.ByReason[ReasonWaiting], 5, "%d requests: all.ByReason[ReasonWaiting]", n)
	checktest.Equal(t, all.Failed, 2, "%d requests: all.Failed", n)
	if all.ByCaller["ann"] != 4 || all.ByCaller[""] != 1 {
		t.Errorf("by caller: %v", all.ByCaller)
	}
	if one.ByCaller["ann"] != 2 {
		t.Errorf("what was added has changed: %v", one.ByCaller)
	}
}

func TestScoresSayWhetherThereIsAnythingToTell(t *testing.T) {
	for _, c := range []struct {
		score                ListScore
		known, pinned, first bool
	}{
		{ListScore{Answers: "auto", First: "upstream"}, false, false, false},
		{ListScore{Answers: "auto", First: "upstream", Samples: 1}, true, false, false},
		{ListScore{Answers: "auto", First: "records"}, true, false, true},
		{ListScore{Answers: "upstream", First: "upstream"}, true, true, false},
	} {
		{
			known, pinned, first := c.score.IsNotable(), c.score.IsPinned(), c.score.IsRecordsFirst()
			checktest.Equal(t, known, c.known, "%+v: known", c.score)
			checktest.Equal(t, pinned, c.pinned, "%+v: pinned", c.score)
			checktest.Equal(t, first, c.first, "%+v: first", c.score)
		}
	}
}

type closer struct {
	io.Reader
	err error
}

func (c closer) Close() error { return c.err }

func TestExchangedClosesItsStream(t *testing.T) {
	want := errors.New("cut")
	if err := (&ExchangeResponse{Stream: closer{strings.NewReader(""), want}}).Close(); !errors.Is(err, want) {
		t.Errorf("with a stream: %v", err)
	}
	if err := (&ExchangeResponse{}).Close(); err != nil {
		t.Errorf("without one: %v", err)
	}
}
