// What upstream forgets by itself stays; what is deleted goes.

package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

// thing is a record of any kind; its instance is a 404 once it is gone.
type thing struct {
	id, body    string
	final, gone bool
}

// shows makes the world answer lists of a key, and instances, from things; it
// gives false for a path it does not know.
func shows(f request.Fetch, key string, things []*thing) *understudy.Page {
	t := f.Target
	if t.List != nil && t.List.Key == key {
		text := `{"` + key + `":[`
		var rows []understudy.Row
		for i, r := range things {
			if i > 0 {
				text += ","
			}
			rows = append(rows, understudy.Row{ID: r.id, Start: len(text), End: len(text) + len(r.body), Final: r.final})
			text += r.body
		}
		p := page(t, 200, text+"]}")
		p.Rows = rows
		return p
	}
	for _, r := range things {
		if t.Instance == nil || t.ID != r.id {
			continue
		}
		if r.gone {
			return page(t, 404, `{"code":20404,"status":404}`)
		}
		p := page(t, 200, r.body)
		p.Rows = []understudy.Row{{ID: r.id, End: len(r.body), Final: r.final}}
		return p
	}
	return nil
}

func TestForgottenByAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		age  time.Duration // of the message; 0: it was never sent
		made time.Duration // how long ago it was made; 0: it does not say
		kept bool
	}{
		{age: 401 * 24 * time.Hour, kept: true}, {age: 400*24*time.Hour + 2*time.Hour, kept: true}, {age: 398 * 24 * time.Hour},
		{age: time.Minute},
		{}, {made: 401 * 24 * time.Hour, kept: true}, {made: 398 * 24 * time.Hour},
		{age: 398 * 24 * time.Hour, made: 401 * 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			var heard []request.PageSaved
			s := open(t, 0, told(&heard), shortAges)
			ago := func(d time.Duration) string {
				if d == 0 {
					return "null"
				}
				return `"` + time.Now().Add(-d).UTC().Format("Mon, 02 Jan 2006 15:04:05 -0700") + `"`
			}
			m := &thing{id: "SM" + sid(1)[2:], final: true}
			m.body = fmt.Sprintf(`{"sid":%q,"account_sid":%q,"date_sent":%s,"date_created":%s,"body":"hello"}`, m.id, account, ago(c.age),
				ago(c.made))
			s.script(func() {
				s.page = func(f request.Fetch) *understudy.Page { return shows(f, "messages", []*thing{m}) }
			})
			s.get(t, s.target(t, "Messages.json", ""))
			time.Sleep(2 * time.Hour) // until it is asked for again
			s.script(func() { m.gone = true })
			instance := s.target(t, "Messages/"+m.id+".json", "")
			if a := s.get(t, instance); a.Page.Status != 404 || a.Outcome != request.Cold {
				t.Errorf("%v: %d, %s", c.age, a.Page.Status, a.Outcome)
			}
			rec, err := s.memory.Record(t.Context(), "twilio", "messages", "messages", m.id)
			went := 0
			for _, l := range heard {
				for _, change := range l.Changes {
					if change.Type == understudy.Deleted {
						went++
					}
				}
			}
			checktest.Equal(t, c.kept, (err == nil), "%v: c.kept", c.age)
			checktest.True(t, c.kept != (went == 1), "%v: c.kept is %v, the deletion was told %d times; %v, %v", c.age,
				c.kept, went, rec, err)
			checktest.True(t, !(err != nil && !errors.Is(err, understudy.ErrNotFound)),
				"%v: err != nil && !errors.Is(err, understudy.ErrNotFound); err is %v", c.age, err)
			if a := s.get(t, instance); a.Page.Status != 404 { // as it was a moment ago
				t.Errorf("%v: then %d", c.age, a.Page.Status)
			}
			time.Sleep(10 * time.Minute)
			if a := s.get(t, instance); a.Page.Status != 404 {
				t.Errorf("%v: ten minutes later %d", c.age, a.Page.Status)
			}
		})
	}
}

func TestForgottenWithItsParent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		held    bool          // the conference is, when the participant goes
		before  string        // its status then
		wait    time.Duration // since it was seen
		after   string        // its status upstream; "": upstream does not answer
		kept    bool
		fetches int // of the conference meanwhile
	}{
		{"under one that has ended", true, "completed", time.Hour, "completed", true, 0},
		{"under one seen in progress just now", true, "in-progress", time.Second, "in-progress", false, 0},
		{"under one that has ended meanwhile", true, "in-progress", time.Hour, "completed", true, 1},
		{"under one still in progress", true, "in-progress", time.Hour, "in-progress", false, 1},
		{"under one nobody can tell of", true, "in-progress", time.Hour, "", true, 1},
		{"under one that is not held", false, "", time.Hour, "", false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 0)
			cf := &thing{id: "CF" + sid(1)[2:]}
			status := func(text string) {
				cf.body, cf.final = fmt.Sprintf(`{"sid":%q,"account_sid":%q,"status":%q}`, cf.id, account, text), text == "completed"
			}
			status(c.before)
			p := &thing{id: cf.id + "~" + sid(2)}
			p.body = fmt.Sprintf(`{"conference_sid":%q,"call_sid":%q,"account_sid":%q,"status":"connected"}`, cf.id, sid(2), account)
			s.script(func() {
				s.page = func(f request.Fetch) *understudy.Page {
					if strings.Contains(f.Target.Key.URI, "Participants") {
						return shows(f, "participants", []*thing{p})
					}
					return shows(f, "conferences", []*thing{cf})
				}
			})
			path := "Conferences/" + cf.id
			s.fill(t, request.Fill{Target: s.target(t, path+"/Participants.json", ""), RecordsOnly: true})
			if c.held {
				s.fill(t, request.Fill{Target: s.target(t, path+".json", ""), RecordsOnly: true})
			}
			time.Sleep(c.wait)
			before, _ := s.fetches(path + ".json")
			s.script(func() {
				p.gone = true
				status(c.after)
				if c.after == "" {
					s.fail = func(_ int, f request.Fetch) error {
						if strings.HasSuffix(f.Target.Key.URI, path+".json") {
							return down(503)
						}
						return nil
					}
				}
			})
			landed := s.fill(t, request.Fill{Target: s.target(t, path+"/Participants/"+sid(2)+".json", ""), RecordsOnly: true,
				Reason: request.ReasonCheck})
			after, _ := s.fetches(path + ".json")
			_, err := s.memory.Record(t.Context(), "twilio", "participants", "participants", p.id)
			checktest.Equal(t, landed.Page.Status, 404, "%s: landed.Page.Status; %v", c.name, err)
			checktest.Equal(t, c.kept, (len(landed.Changes) == 0), "%s: c.kept; %v", c.name, err)
			checktest.Equal(t, c.kept, (err == nil), "%s: c.kept", c.name)
			checktest.Equal(t, after-before, c.fetches, "%s: after-before; %v", c.name, err)
		})
	}
}

// TestForgottenContents: a picture of a message of two years ago is kept though
// upstream has it no more; one that is deleted is not.
func TestForgottenContents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		age  time.Duration
		kept int64
	}{{500 * 24 * time.Hour, 1}, {10 * 24 * time.Hour, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s, x, files := recorded(t, shortAges)
			message, me := "MM"+sid(1)[2:], "ME"+sid(1)[2:]
			m := &thing{id: me, final: true}
			m.body = fmt.Sprintf(`{"sid":%q,"account_sid":%q,"parent_sid":%q,"date_created":%q}`, me, account, message,
				time.Now().Add(-c.age).UTC().Format("Mon, 02 Jan 2006 15:04:05 -0700"))
			s.script(func() {
				s.page = func(f request.Fetch) *understudy.Page { return shows(f, "media_list", []*thing{m}) }
			})
			path := "Messages/" + message + "/Media"
			s.fill(t, request.Fill{Target: s.target(t, path+".json", ""), RecordsOnly: true})
			content := request.MediaRequest{Target: s.target(t, path+"/"+me, "")}
			s.hear(t, content)
			if files.Stats().Files != 1 {
				t.Fatalf("%v: %+v", c.age, files.Stats())
			}
			time.Sleep(2 * time.Hour)
			x.answer(func(request.MediaRequest) (*request.MediaResponse, error) { return medio(404, ""), nil })
			content.NoCache = true
			if got, _ := s.hear(t, content); got.Status != 404 || files.Stats().Files != c.kept {
				t.Errorf("%v: %d, %+v", c.age, got.Status, files.Stats())
			}
		})
	}
}
