// Token: one that names a hidden record is refused like one that names none.

package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

func long(prefix string, digit string) string { return prefix + strings.Repeat(digit, 32) }

var (
	openCall, hiddenCall = long("CA", "1"), long("CA", "2")
	conference           = long("CF", "1")
	tokenShelf           = shelf{
		{"calls", openCall}:                             `{"sid":"` + openCall + `","from":"+15550000001","start_time":"` + young + `"}`,
		{"calls", hiddenCall}:                           `{"sid":"` + hiddenCall + `","from":"+4411","start_time":"` + young + `"}`,
		{"recordings", long("RE", "1")}:                 `{"sid":"` + long("RE", "1") + `","call_sid":"` + openCall + `"}`,
		{"recordings", long("RE", "2")}:                 `{"sid":"` + long("RE", "2") + `","call_sid":"` + hiddenCall + `"}`,
		{"participants", conference + "~" + openCall}:   `{"conference_sid":"` + conference + `","call_sid":"` + openCall + `"}`,
		{"participants", conference + "~" + hiddenCall}: `{"conference_sid":"` + conference + `","call_sid":"` + hiddenCall + `"}`,
	}
)

// walk asks for a page of a list at a token. What reaches the mirror is answered
// with the rows.
func walk(t *testing.T, g *Gate, who, path, token string, then bool, rows ...string) error {
	t.Helper()
	at, err := g.specs["twilio"].Resolve("twilio", "/2010-04-01/Accounts/AC00000000000000000000000000000001"+path,
		"PageSize=2&Page=1&PageToken="+url.QueryEscape(token))
	if err != nil {
		t.Fatal(err)
	}
	c := as("r")
	c.Name = who
	a := request.Request{Target: at}
	if then {
		a.AsOf = start.Add(-time.Minute)
	}
	_, err = pageFor(t, g, c, a, func(context.Context, request.Request) (*request.Response, error) {
		p := &understudy.Page{Key: at.Key, Kind: at.Kind.Name, List: true, Status: http.StatusOK}
		var bodies []string
		for _, id := range rows {
			p.Rows = append(p.Rows, understudy.Row{ID: id})
			bodies = append(bodies, string(g.records.newest("twilio", at.Kind.Name, id).Body))
		}
		p.Body = fmt.Appendf(nil, `{%q:[%s]}`, at.List.Key, strings.Join(bodies, ","))
		return &request.Response{Page: p, Outcome: request.Composed}, nil
	})
	return err
}

func TestTokensTellNothing(t *testing.T) {
	g := ruledGate(t, RowRules{"calls": {Numbers: []string{OwnNumbers}}}, tokenShelf)
	for _, list := range []struct {
		path, open, hidden, never string
		heads                     []string
	}{
		{"/Calls.json", openCall, hiddenCall, long("CA", "3"), []string{"PA", "PB"}},
		{"/Recordings.json", long("RE", "1"), long("RE", "2"), long("RE", "3"), []string{"PA", "PB"}},
		{"/Calls/" + openCall + "/Recordings.json", long("RE", "1"), long("RE", "2"), long("RE", "3"), []string{"PA", "PB"}},
		{"/Conferences/" + conference + "/Participants.json", conference + "~" + openCall, conference + "~" + hiddenCall, conference + "~" +
			long("CA", "3"), []string{"after~", "before~"}},
	} {
		for _, head := range list.heads {
			for _, then := range []bool{false, true} {
				if err := walk(t, g, "one", list.path, head+list.open, then); err != nil {
					t.Errorf("%s at %s: %v", list.path, head+list.open, err)
				}
				hidden, never := walk(t, g, "one", list.path, head+list.hidden, then), walk(t, g, "one", list.path, head+list.never, then)
				checktest.True(t, errors.Is(hidden, understudy.ErrInvalid),
					"%s at %s, as of %v: hidden is %v, want understudy.ErrInvalid", list.path, head, then, hidden)
				checktest.True(t, errors.Is(never, understudy.ErrInvalid),
					"%s at %s, as of %v: never is %v, want understudy.ErrInvalid", list.path, head, then, never)
				checktest.Equal(t, hidden.Error(), never.Error(), "%s at %s, as of %v: hidden.Error()", list.path,
					head, then)
			}
		}
	}
}

// A walk goes on at what it was given, whatever becomes of that, and no other caller
// does.
func TestGivenTokensAreGood(t *testing.T) {
	first, last, between := long("CA", "4"), long("CA", "6"), long("CA", "5")
	held := shelf{}
	for _, id := range []string{first, between, last} {
		held[[2]string{"calls", id}] = `{"sid":"` + id + `","status":"ringing","start_time":"` + young + `"}`
	}
	g := ruledGate(t, RowRules{"calls": {Where: map[string]Match{"status": {In: []string{"ringing"}}}, Age: 25 * time.Hour}}, held)
	now := start
	g.now = func() time.Time { return now }
	const list = "/Calls.json"
	if err := walk(t, g, "one", list, "", false, first, between, last); err != nil {
		t.Fatal(err)
	}
	try := func(when, who, id string, good bool) {
		t.Helper()
		for _, head := range []string{"PA", "PB"} {
			if err := walk(t, g, who, list, head+id, false); (err == nil) != good {
				t.Errorf("%s, %s at %s: %v", when, who, head+id, err)
			}
		}
	}
	try("found", "other", last, true)
	held[[2]string{"calls", last}] = strings.Replace(held[[2]string{"calls", last}], "ringing", "busy", 1)
	try("changed", "one", last, true)
	try("changed", "other", last, false)
	now = start.Add(59 * time.Minute)
	try("nearly an hour later", "one", last, true)
	now = start.Add(61 * time.Minute) // too old, too
	try("an hour later", "one", last, false)
	try("an hour later", "one", first, false)

	now = start.Add(59 * time.Minute)
	if err := walk(t, g, "one", list, "", false, first, between, first); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	try("too old since", "one", first, true)
	try("too old since", "one", between, false) // no link named it
	try("too old since", "other", first, false)

	// What is gone was found when it was last seen, or it was not.
	now = start
	gone := shelf{{"calls", last}: held[[2]string{"calls", last}], {"calls", first}: held[[2]string{"calls", first}]}
	clear(held)
	g.records.last = gone.newest
	try("gone", "other", first, true)
	try("gone hidden", "other", last, false)
}
