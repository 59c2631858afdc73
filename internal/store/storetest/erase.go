// The rules of erasing: what went is nowhere, and does not come back.

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/erase"
)

// Erasing is a store that erases.
type Erasing interface {
	Store
	CountWaiting(ctx context.Context) (erase.Waiting, error)
	ReadErasures(ctx context.Context, before int64, limit int) ([]erase.Erasure, error)
	Find(ctx context.Context, source, what string) (erase.Found, error)
	EraseNumber(ctx context.Context, source, what string) (erase.Erasure, erase.Found, error)
	Expire(ctx context.Context, source, kind string) (int, error)
	Horizon(source, kind string) int64
	EraseListed(ctx context.Context, o erase.Job) ([]erase.Erasure, error)
}

// Keep is the retention of messages in stores under RunErasing.
const Keep = 100 * 24 * time.Hour

// RunErasing runs the rules of erasing. open returns a new, empty store with
// the spec of Source, in which the body of messages redacts, that keeps
// messages for Keep.
func RunErasing(t *testing.T, open func(t testing.TB, now func() time.Time) Erasing) {
	for _, rule := range []struct {
		name string
		test func(t *testing.T, s *erasingSuite)
	}{
		{"what went is erased", goneErased},
		{"what comes back before it is erased stays", backBeforeErased},
		{"what lost its race is erased too", lateErased},
		{"a redaction takes back what was said", redacted},
		{"a person is erased", personErased},
		{"ways of writing a number", waysOfWriting},
		{"what lies under a record goes with it", underErased},
		{"a record named by its id is erased once", namedOnce},
		{"the erased does not come back", notBack},
		{"age erases without a change", agedErased},
		{"pages that echo a value go", echoes},
		{"an errand broken off is finished", brokenOff},
		{"a page that is stored whole goes with what it shows", wholeErased},
	} {
		t.Run(strings.ReplaceAll(rule.name, " ", "-"), func(t *testing.T) {
			s := &erasingSuite{suite: &suite{T: t}}
			s.setNow(Epoch)
			s.e = open(t, s.now)
			s.suite.Store = s.e
			rule.test(t, s)
		})
	}
}

type erasingSuite struct {
	suite *suite
	e     Erasing
	clock atomic.Pointer[time.Time] // atomic, because timers of the store read it
}

func (s *erasingSuite) now() time.Time { return *s.clock.Load() }

func (s *erasingSuite) setNow(t time.Time) { s.clock.Store(&t) }

// message is a message as a row.
func message(n int, from, to, body string) row {
	id := fmt.Sprintf("SM%032x", n)
	return row{id: id, body: fmt.Sprintf(`{"sid": %q, "from": %q, "to": %q, "body": %q}`, id, from, to, body)}
}

// messages is a list of them, when they were sent.
func messages(uri string, when, sent time.Time, rows ...row) *understudy.Page {
	p := list(uri, when, rows...)
	p.Kind, p.Shape = "messages", "messages"
	for i := range p.Rows {
		p.Rows[i].Clock = sent.Unix()
	}
	p.Body = bytes.Replace(p.Body, []byte(`{"calls"`), []byte(`{"texts"`), 1)
	p.Sum = sum(p.Body)
	return p
}

// carry carries out and compares the receipts with words like "asked 1 2 1":
// records, versions, pages.
func (s *erasingSuite) carry(want ...string) {
	s.suite.Helper()
	done, err := s.e.EraseListed(s.suite.Context(), erase.Job{})
	if err != nil {
		s.suite.Fatal(err)
	}
	var got []string
	for _, e := range done {
		got = append(got, fmt.Sprint(e.Cause, " ", e.Records, " ", e.Versions, " ", e.Pages))
		if e.Done.IsZero() || e.Begun.IsZero() || (e.Hash != "") != (e.Cause == erase.CauseAsked) || e.Source != Source {
			s.suite.Fatalf("receipt %+v", e)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		s.suite.Fatalf("receipts %q, want %q", got, want)
	}
	s.waiting(0)
	all, err := s.e.ReadErasures(s.suite.Context(), 0, 100)
	if err != nil || len(all) < len(done) {
		s.suite.Fatalf("receipts kept %+v, %v", all, err)
	}
	for i := range done {
		if all[i] != done[i] {
			s.suite.Fatalf("receipt kept %+v, want %+v", all[i], done[i])
		}
	}
	mustVerify(s.suite.T, s.suite.Store)
}

func (s *erasingSuite) waiting(want int64) {
	s.suite.Helper()
	if w, err := s.e.CountWaiting(s.suite.Context()); err != nil || w.Records != want || w.Since.IsZero() != (want == 0) {
		s.suite.Fatalf("waiting %+v, %v, want %d", w, err, want)
	}
}

func (s *erasingSuite) noMessage(n int) {
	s.suite.Helper()
	rec, err := s.suite.Record(s.suite.Context(), Source, "messages", "messages", message(n, "", "", "").id)
	if !errors.Is(err, understudy.ErrNotFound) {
		s.suite.Fatalf("message %d: %v, %v, want not found", n, rec, err)
	}
}

func (s *erasingSuite) hasMessage(r row) {
	s.suite.Helper()
	if rec, err := s.suite.Record(s.suite.Context(), Source, "messages", "messages", r.id); err != nil || string(rec.Body) != r.body {
		s.suite.Fatalf("message %s: %v, %v", r.id, rec, err)
	}
}

func goneErased(t *testing.T, s *erasingSuite) {
	a, b := list("/a", at(1), call(1, "x"), call(2, "x")), list("/b", at(1), call(2, "x"))
	s.suite.save(a)
	s.suite.save(b)
	s.suite.save(instance("/1", at(2), call(1, "y")))
	s.carry()
	s.suite.save(gone("/1", at(3), sid(1), 404))
	s.waiting(1)
	s.carry("deleted 1 2 2")
	s.suite.noPage(a)
	s.suite.noPage(instance("/1", at(2), call(1, "y")))
	s.suite.page(b)
	s.suite.noRecord("calls", sid(1))
	s.suite.record(call(2, "x"))
	s.suite.wantChanges(s.suite.changes(), "came "+sid(1), "came "+sid(2), "changed "+sid(1), "went "+sid(1))
	s.suite.wantChanges(s.suite.save(instance("/1", at(900), call(1, "y"))).Changes, "came "+sid(1))
	s.suite.record(call(1, "y"))
	s.carry()
}

func backBeforeErased(t *testing.T, s *erasingSuite) {
	s.suite.save(instance("/1", at(1), call(1, "x")))
	s.suite.save(instance("/1", at(2), call(1, "y")))
	s.suite.save(gone("/1", at(3), sid(1), 404))
	back := list("/back", at(900), call(1, "y"))
	s.suite.wantChanges(s.suite.save(back).Changes, "came "+sid(1))
	s.carry("deleted 1 1 1")
	s.suite.record(call(1, "y"))
	s.suite.page(back)
}

func lateErased(t *testing.T, s *erasingSuite) {
	s.suite.save(instance("/1", at(1), call(1, "x")))
	s.suite.save(gone("/1", at(100), sid(1), 404))
	s.carry("deleted 1 1 1")
	late := list("/late", at(90), call(1, "z"), call(2, "x"))
	s.suite.wantChanges(s.suite.save(late).Changes, "came "+sid(2))
	s.carry("deleted 1 1 1")
	s.suite.noPage(late)
	s.suite.record(call(2, "x"))

	said, silent := message(1, "+15550001111", "+15550002222", "the secret"), message(1, "+15550001111", "+15550002222", "")
	s.suite.save(messages("/m", at(100), Epoch, said))
	s.suite.save(messages("/m", at(110), Epoch, silent))
	s.carry("redacted 1 1 0")
	s.suite.save(messages("/late", at(105), Epoch, said))
	s.carry("redacted 1 1 1")
	s.hasMessage(silent)
}

func redacted(t *testing.T, s *erasingSuite) {
	said := message(1, "+15550001111", "+15550002222", "the secret")
	again := message(1, "+15550001111", "+15550002222", "another secret")
	silent := message(1, "+15550001111", "+15550002222", "")
	other := message(2, "+15550001111", "+15550002222", "")
	m, n := messages("/m", at(1), Epoch, said, other), messages("/n", at(2), Epoch, again)
	s.suite.save(m)
	s.suite.save(n)
	short := messages("/short", at(2), Epoch, row{id: said.id, body: `{"body": "the secret"}`})
	short.Shape = "short"
	s.suite.save(short)
	s.carry() // an empty field that never said anything takes nothing back
	p := messages("/now", at(3), Epoch, silent)
	s.suite.wantChanges(s.suite.save(p).Changes, "changed "+said.id)
	s.carry("redacted 1 3 3")
	s.suite.noPage(m)
	s.suite.noPage(n)
	s.suite.noPage(short)
	s.suite.page(p)
	s.hasMessage(silent)
	s.hasMessage(other)
	for _, when := range []time.Time{at(1), at(2), at(3)} { // what stands for what is not kept says so
		rec, err := s.suite.RecordAt(t.Context(), Source, "messages", "messages", said.id, when)
		if err != nil || string(rec.Body) != silent.body || rec.Since.Before(at(3)) {
			t.Fatalf("as of %v: %+v, %v", when, rec, err)
		}
		n := 0
		w := query.RangeScan{Source: Source, Kind: "messages", Shape: "messages"}
		if err := s.suite.ScanRecordsAt(t.Context(), w, when, func(*understudy.Record, int64) bool { n++; return true }); err != nil || n != 2 {
			t.Fatalf("a list as of %v holds %d records, %v", when, n, err)
		}
	}
	if _, err := s.suite.RecordAt(t.Context(), Source, "messages", "messages", said.id, at(0)); !errors.Is(err, understudy.ErrNotFound) {
		t.Fatalf("before it came: %v", err)
	}
	if _, err := s.suite.Record(t.Context(), Source, "messages", "short", said.id); !errors.Is(err, understudy.ErrNotFound) {
		t.Fatalf("in another shape: %v", err)
	}
	if k := s.suite.kind("messages"); k.Records != 2 || k.Changes != 4 {
		t.Fatalf("kind %+v", k)
	}
}

const anna, bert, ours = "+14155550100", "+4915550001234", "+18005550199"

func personErased(t *testing.T, s *erasingSuite) {
	one, two, three := message(1, anna, ours, "hi"), message(2, ours, anna, "ho"), message(3, bert, ours, "hey")
	s.suite.save(messages("/m", at(1), Epoch, one, two, three))
	only := messages("/bert", at(1), Epoch, three)
	s.suite.save(only)
	s.suite.save(messages("/2", at(2), Epoch, message(2, ours, bert, "ho"))) // an older version was hers
	f, err := s.e.Find(t.Context(), Source, anna)
	if err != nil || f.Records() != 2 || f.Kinds["messages"] != 2 {
		t.Fatalf("found %+v, %v", f, err)
	}
	s.waiting(0)
	e, _, err := s.e.EraseNumber(t.Context(), Source, anna)
	if err != nil || e.Number == 0 || !e.Done.IsZero() {
		t.Fatalf("%+v, %v", e, err)
	}
	s.waiting(2)
	changes := s.suite.changes()
	s.suite.wantChanges(changes[len(changes)-2:], "went "+one.id, "went "+two.id)
	s.noMessageListed()
	s.carry("asked 2 3 2")
	s.noMessage(1)
	s.noMessage(2)
	s.hasMessage(three)
	s.suite.page(only)
	if k := s.suite.kind("messages"); k.Records != 1 {
		t.Fatalf("kind %+v", k)
	}
	if e, f, err := s.e.EraseNumber(t.Context(), Source, anna); err != nil || f.Records() != 0 || e.Number != 0 {
		t.Fatalf("again: %+v, %+v, %v", e, f, err)
	}
	again, _ := s.e.ReadErasures(t.Context(), 0, 10)
	s.suite.save(messages("/4", at(4), Epoch, message(4, anna, ours, "new")))
	if _, _, err := s.e.EraseNumber(t.Context(), Source, "001 (415) 555-0100"); err != nil {
		t.Fatal(err)
	}
	s.carry("asked 1 1 1")
	if now, _ := s.e.ReadErasures(t.Context(), 0, 10); now[0].Hash != again[0].Hash {
		t.Fatal("one number has two hashes")
	}
	if _, err := s.e.Find(t.Context(), "unheard", anna); !errors.Is(err, understudy.ErrInvalid) {
		t.Fatalf("unknown source: %v", err)
	}
}

// noMessageListed makes sure that what is listed is not answered either.
func (s *erasingSuite) noMessageListed() {
	s.suite.Helper()
	s.noMessage(1)
	s.noMessage(2)
}

func waysOfWriting(t *testing.T, s *erasingSuite) {
	s.suite.save(messages("/m", at(1), Epoch, message(1, anna, ours, "x"), message(2, "(415) 555-0100", ours, "x"),
		message(3, "whatsapp:+14155550100", ours, "x"),
		message(4, "client:anna", ours, "x"), message(5, "+494155550100", ours, "x"), message(6, "+14155550101", ours, "x")))
	for what, want := range map[string]int{
		"+14155550100": 3, "+1 (415) 555-0100": 3, "0014155550100": 3, "tel:+1-415-555-0100": 3, "sip:+14155550100@example.com": 3,
		"client:ANNA": 1, "+14155550101": 1, "5550100": 0, "+1": 0, "anna": 0, "": 0, "+494155550100": 2, "messages/" +
			message(6, "", "", "").id: 1,
	} {
		if f, err := s.e.Find(t.Context(), Source, what); err != nil || f.Records() != want {
			t.Errorf("%q: %d records, %v, want %d", what, f.Records(), err, want)
		}
	}
	if _, err := s.e.Find(t.Context(), Source, "415 555 0100"); !errors.Is(err, understudy.ErrInvalid) ||
		!strings.Contains(err.Error(), "+14155550100") {
		t.Errorf("a number of two countries: %v", err)
	}
}

func underErased(t *testing.T, s *erasingSuite) {
	c := fmt.Sprintf(`{"sid": %q, "from": %q, "to": %q}`, sid(1), anna, ours)
	s.suite.save(instance("/c", at(1), row{id: sid(1), body: c}))
	s.suite.save(instance("/d", at(1), row{id: sid(2), body: strings.NewReplacer(sid(1), sid(2), anna, bert).Replace(c)}))
	for i, kind := range []string{"recordings", "transcriptions", "participants"} {
		field, target := "call_sid", [2]string{sid(1), sid(2)}
		if kind == "transcriptions" {
			field, target = "recording_sid", [2]string{"RE-recordings-0", "RE-recordings-1"}
		}
		for j := range target {
			id := fmt.Sprintf("RE-%s-%d", kind, j)
			p := instance(fmt.Sprintf("/%d/%d", i, j), at(2), row{id: id, body: fmt.Sprintf(`{%q: %q}`, field, target[j])})
			p.Kind, p.Shape = kind, kind
			s.suite.save(p)
		}
	}
	f, err := s.e.Find(t.Context(), Source, anna)
	if err != nil || fmt.Sprint(f.Kinds) != "map[calls:1 participants:1 recordings:1 transcriptions:1]" {
		t.Fatalf("found %v, %v", f.Kinds, err)
	}
	if _, _, err := s.e.EraseNumber(t.Context(), Source, anna); err != nil {
		t.Fatal(err)
	}
	s.carry("asked 4 4 4")
	for kind, id := range map[string]string{"recordings": "RE-recordings-", "transcriptions": "RE-transcriptions-",
		"participants": "RE-participants-"} {
		if _, err := s.suite.Record(t.Context(), Source, kind, kind, id+"0"); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := s.suite.Record(t.Context(), Source, kind, kind, id+"1"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func namedOnce(t *testing.T, s *erasingSuite) {
	s.suite.save(instance("/c", at(1), call(1, "x")))
	eraseNamed := func(want string) {
		t.Helper()
		_, f, err := s.e.EraseNumber(t.Context(), Source, "calls/"+sid(1))
		if err != nil || fmt.Sprint(f.Kinds) != want {
			t.Fatalf("erases %v, %v, want %s", f.Kinds, err, want)
		}
	}
	eraseNamed("map[calls:1]")
	eraseNamed("map[calls:1]")            // the first erasure is not complete
	s.carry("asked 1 0 0", "asked 1 1 1") // the newest is first
	eraseNamed("map[]")
	s.suite.save(instance("/c", at(2), call(1, "x")))
	p := instance("/r", at(2), row{id: "RE-1", body: fmt.Sprintf(`{"call_sid": %q}`, sid(1))})
	p.Kind, p.Shape = "recordings", "recordings"
	s.suite.save(p)
	eraseNamed("map[recordings:1]")
	s.carry("asked 1 1 1")
	eraseNamed("map[]")
	s.carry()
}

func notBack(t *testing.T, s *erasingSuite) {
	hers, his := message(1, anna, ours, "hi"), message(2, bert, ours, "hey")
	s.suite.save(messages("/m", at(1), Epoch, hers, his))
	if _, _, err := s.e.EraseNumber(t.Context(), Source, anna); err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // before and after it is carried out
		p := messages("/m", at(2+i), Epoch, hers, message(10+i, bert, ours, "new"))
		saved := s.suite.save(p)
		s.suite.wantChanges(saved.Changes, "came "+message(10+i, "", "", "").id)
		if saved.Page.NotStored != "erased" || saved.Page.Version != 0 || len(saved.Page.Rows) != 2 {
			t.Fatalf("saved %+v", strip(saved.Page))
		}
		one := messages("/one", at(2+i), Epoch, hers)
		one.Shape = "other"
		s.suite.wantChanges(s.suite.save(one).Changes)
		s.noMessage(1)
		if i == 0 {
			s.carry("asked 1 1 1")
			s.suite.noPage(p)
		}
	}
	s.hasMessage(message(11, bert, ours, "new"))
	s.hasMessage(his)
}

func agedErased(t *testing.T, s *erasingSuite) {
	old, young := Epoch.Add(-Keep+time.Hour), Epoch.Add(-Keep+48*time.Hour)
	s.setNow(Epoch.Add(-Keep + 2*time.Hour))
	a := messages("/old", s.now(), old, message(1, bert, ours, "old"))
	s.suite.save(a)
	b := messages("/none", s.now(), time.Unix(0, 0), message(3, bert, ours, "no clock"))
	s.suite.save(b)
	s.setNow(Epoch)
	c := messages("/young", at(0), young, message(2, bert, ours, "young"))
	s.suite.save(c)
	before := len(s.suite.changes())
	if n, err := s.e.Expire(t.Context(), Source, "messages"); n != 0 || err != nil {
		t.Fatalf("%d, %v: nothing is old yet", n, err)
	}
	s.setNow(Epoch.Add(3 * time.Hour))
	_, silent, err := s.e.ReadEdition(t.Context(), Source)
	if n, err := s.e.Expire(t.Context(), Source, "messages"); n != 2 || err != nil {
		t.Fatalf("%d, %v, want 2", n, err)
	}
	if _, now, worse := s.e.ReadEdition(t.Context(), Source); err != nil || worse != nil || now == silent {
		t.Errorf("who keeps counts does not hear that records went: %d, %v, %v", now, err, worse)
	}
	if h := s.e.Horizon(Source, "messages"); h != s.now().Add(-Keep).Unix() || s.e.Horizon(Source, "calls") != 0 {
		t.Fatalf("horizon %d", h)
	}
	s.carry("aged 2 2 2")
	s.noMessage(1)
	s.noMessage(3)
	s.suite.noPage(a)
	s.suite.noPage(b)
	s.suite.page(c)
	if k := s.suite.kind("messages"); k.Records != 1 || len(s.suite.changes()) != before {
		t.Fatalf("kind %+v, %d changes, were %d", k, len(s.suite.changes()), before)
	}
	// It does not come back, whether or not it was here before.
	saved := s.suite.save(messages("/old", s.now(), old, message(1, bert, ours, "old"), message(4, bert, ours, "as old")))
	s.suite.wantChanges(saved.Changes)
	if saved.Page.NotStored != "older than its retention" {
		t.Fatalf("saved %+v", strip(saved.Page))
	}
	s.suite.wantChanges(s.suite.save(messages("/none", s.now(), time.Unix(0, 0), message(3, bert, ours, "no clock"))).Changes)
	if n, err := s.e.Expire(t.Context(), Source, "messages"); n != 0 || err != nil {
		t.Fatalf("%d, %v: all is done", n, err)
	}
	s.carry()
	// Unless it became young.
	s.suite.wantChanges(s.suite.save(messages("/old", s.now(), young, message(1, bert, ours, "old"))).Changes,
		"came "+message(1, "", "", "").id)
}

func echoes(t *testing.T, s *erasingSuite) {
	s.suite.save(messages("/m", at(1), Epoch, message(1, anna, ours, "a long text of hers"), message(2, bert, ours, "hey")))
	var pages []*understudy.Page
	for _, uri := range []string{"/f?To=%2B14155550100", "/f?To=%2B1+415-555-0100", "/number/14155550100/calls", "/f?Q=a+long+text+of+hers"} {
		pages = append(pages, messages(uri, at(2), Epoch))
	}
	inside := messages("/envelope", at(2), Epoch)
	inside.Body = bytes.Replace(inside.Body, []byte(`"page": 0`), []byte(`"about": "+14155550100"`), 1)
	inside.Sum = sum(inside.Body)
	plain := messages("/plain", at(2), Epoch)
	plain.Body = []byte("the number is (415) 555-0100, or so: +1 415 555 0100.")
	plain.Sum = sum(plain.Body)
	pages = append(pages, inside, plain)
	others := []*understudy.Page{messages("/f?To=%2B4915550001234", at(2), Epoch), messages("/f?To=%2B14155550101", at(2), Epoch)}
	for _, p := range append(pages, others...) {
		s.suite.save(p)
	}
	if _, _, err := s.e.EraseNumber(t.Context(), Source, anna); err != nil {
		t.Fatal(err)
	}
	s.carry(fmt.Sprint("asked 1 1 ", 1+len(pages)))
	for _, p := range pages {
		s.suite.noPage(p)
	}
	for _, p := range others {
		s.suite.page(p)
	}
}

func brokenOff(t *testing.T, s *erasingSuite) {
	for i := range 40 {
		s.suite.save(messages(fmt.Sprint("/", i), at(i), Epoch, message(i, anna, ours, "hi"), message(100+i, bert, ours, "hey")))
	}
	if _, _, err := s.e.EraseNumber(t.Context(), Source, anna); err != nil {
		t.Fatal(err)
	}
	s.waiting(40)
	broken := errors.New("broken off")
	told := 0
	_, err := s.e.EraseListed(t.Context(), erase.Job{Gone: func(context.Context, string, []string) error { told++; return broken }})
	if !errors.Is(err, broken) || told != 1 {
		t.Fatalf("%v, told %d times", err, told)
	}
	if w, err := s.e.CountWaiting(t.Context()); err != nil || w.Records == 0 {
		t.Fatalf("waiting %+v, %v: there is no receipt yet", w, err)
	}
	// Whether memory has forgotten is not known: it is told again.
	told = 0
	done, err := s.e.EraseListed(t.Context(), erase.Job{Gone: func(context.Context, string, []string) error { told++; return nil }})
	if err != nil || told == 0 || len(done) != 1 || done[0].Records != 40 || done[0].Versions != 40 || done[0].Pages != 40 ||
		done[0].Done.IsZero() {
		t.Fatalf("told %d times, %+v, %v", told, done, err)
	}
}
