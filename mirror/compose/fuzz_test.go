// Fuzz: raw queries, and tokens and values of filters alone.

package compose_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/mirror/compose"
	"understudy/spec"
	"understudy/upstream"
)

// paths are lists of several sorts: by number of filters, under a record, with
// absolute links, of records whose id has two parts.
var paths = []string{
	root + "/Calls.json", root + "/Messages.json", "/v1/Alerts", "/v1/Events", root + "/Recordings.json", root +
		"/IncomingPhoneNumbers/Local.json",
	root + "/Calls/CA1/Recordings.json", root + "/Conferences/CF1/Participants.json", root + "/Addresses.json", root + "/Keys.json",
	"/2010-04-01/Accounts.json",
}

// bodies are records of a shape that all lists can look at.
var bodies = []string{
	`{"sid":"CA2","account_sid":"` + account + `","to":"+15005550006","from":"a\"b\\","status":"completed","start_time":"Mon, 01 Jun 2026 ` +
		`12:00:00 +0000","date_created":"Mon, 01 Jun 2026 11:00:00 +0000","muted":true,"conference_sid":"CF1","call_sid":"CA1"}`,
	`{"sid":"CA3","account_sid":"` + account + `","to":null,"from":7,"status":{},"start_time":null,"beta":false,"phone_number":"+1*5"}`,
}

// FuzzNew composes whatever a query asks for: it never panics, refusals and
// answers are JSON, and an answer's links lead to lists that can be composed.
func FuzzNew(f *testing.F) {
	for i, q := range []string{
		"", "PageSize=2&Page=1&PageToken=PACA2", "StartTime%3E=2026-05-01&StartTime<=2026&To=%2B1", "PageToken=PBCA3&PageSize=1",
		"Page=99999999999",
		"PageSize=0", "DateSent=>=2024", "Beta=falſe", "LogLevel=error&StartDate=2026-05-20", "To&From=&To=x", "PageToken=after~a~b",
		"PageToken=PA", "understudy.order=asc",
		"IncludeSoftDeleted=false", "PhoneNumber=1**", "x=%00", "EndDate=2026-05-20T10:00:00.5-0700",
		"CallSid=CA1&DateCreated<=05/20/2026 10:00:00 MST",
	} {
		f.Add(uint8(i), q)
	}
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		f.Fatal(err)
	}
	src := &spec.Source{Name: "twilio", Spec: sp, User: account, PublicURL: "http://slow.test"}
	held := func(kind, id string) *understudy.Record {
		return &understudy.Record{Kind: kind, ID: id, Body: []byte(bodies[0])}
	}
	f.Fuzz(func(t *testing.T, path uint8, params string) {
		aim, err := sp.Resolve("twilio", paths[int(path)%len(paths)], params)
		if err != nil {
			return
		}
		if aim.Kind == nil {
			return
		}
		var found []query.Hit
		for i, body := range bodies {
			id := strings.Join(append(aim.Kind.Prefixes, "CF1~CA")[:1], "") + string(rune('2'+i))
			found = append(found, query.Hit{Record: &understudy.Record{ID: id, Body: []byte(body)}, Order: query.OrderKey(1000 - i)})
		}
		for range 2 {
			l, err := compose.New(src, aim, compose.Options{Now: func() time.Time { return epoch }, FindRecord: held, OwnTokens: true})
			var refused *compose.Refusal
			if errors.As(err, &refused) {
				{
					_, err := jsonspan.Parse(refused.Body)
					checktest.MustNoError(t, err, "%s", aim.Key)
					checktest.MustEqual(t, refused.Status, 400, "%s: refused.Status", aim.Key)
					checktest.MustTrue(t, refused.Message != "", "%s: refused.Message is empty", aim.Key)
				}
				return
			}
			if err != nil {
				if !errors.Is(err, understudy.ErrInvalid) {
					t.Fatalf("%s: %v", aim.Key, err)
				}
				return
			}
			for ok := true; ok; ok = l.NeedAnotherPass() {
				for _, one := range found {
					if !l.Take(one) {
						break
					}
				}
			}
			p, err := l.BuildPage(epoch)
			if errors.Is(err, understudy.ErrNotMirrored) {
				return // a record of another list, in which it was not seen as this one shows it
			}
			if err != nil {
				t.Fatalf("%s: %v", aim.Key, err)
			}
			if _, err := jsonspan.Parse(p.Body); err != nil || jsonspan.CheckLossless(p.Body) != nil {
				t.Fatalf("%s: %s", aim.Key, p.Body)
			}
			if p.Next.IsZero() {
				return
			}
			if aim, err = sp.ResolveLink("twilio", p.Next.URI); err != nil {
				t.Fatalf("%s: %v", p.Next, err)
			}
			if next, err := compose.New(src, aim, compose.Options{Now: func() time.Time { return epoch }, FindRecord: held,
				OwnTokens: true}); err != nil || start(next) != p.Rows[len(p.Rows)-1].ID {
				t.Fatalf("%s: the next page %s: %v", p.Key, p.Next, err)
			}
		}
	})
}

func start(l *compose.List) string {
	id, _ := l.Start()
	return id
}
