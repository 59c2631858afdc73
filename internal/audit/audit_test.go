package audit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/wal"
)

var (
	person  = understudy.Caller{Name: "ada", Grant: &understudy.Grant{Role: "support"}}
	program = understudy.Caller{Name: "reports", Source: "twilio", Grant: &understudy.Grant{Role: "support"}}
)

// folder is a data folder with a log.
type folder struct {
	t   *testing.T
	dir string
	key Key

	mu  sync.Mutex // the log's own goroutine reads the clock, too
	now time.Time
}

// tick is the clock: it goes on by a millisecond each time it is read.
func (f *folder) tick() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(time.Millisecond)
	return f.now
}

func newFolder(t *testing.T) *folder {
	f := &folder{t: t, dir: t.TempDir(), now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	key, err := ReadKey(filepath.Join(f.dir, "audit.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	f.key = key
	return f
}

func (f *folder) options() Options {
	return Options{Dir: filepath.Join(f.dir, "audit"), Heads: filepath.Join(f.dir, "audit.heads"), Key: f.key, SegmentSize: 4 << 10,
		Now: f.tick}
}

func (f *folder) log() *Log {
	l := New(f.options())
	f.t.Cleanup(func() { _ = l.Close() })
	return l
}

func (f *folder) reader() Reader { return Reader{Dir: filepath.Join(f.dir, "audit"), Key: f.key} }

func (f *folder) find(filter Filter) []Entry {
	f.t.Helper()
	found, err := f.reader().Search(f.t.Context(), filter)
	if err != nil {
		f.t.Fatal(err)
	}
	return found.Entries
}

func (f *folder) verify(known ...Checkpoint) []Report {
	f.t.Helper()
	o := f.options()
	all, err := Verifier{Keys: []string{f.key.PublicKey()}, Known: known}.Verify(o.Dir, o.Heads)
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

func (f *folder) sound() {
	f.t.Helper()
	for _, r := range f.verify() {
		if len(r.Faults) > 0 {
			f.t.Errorf("chain %s: %q", r.Chain, r.Faults)
		}
	}
}

func record(id string, values ...string) understudy.AuditEntry {
	return understudy.AuditEntry{Caller: person, Action: understudy.ActionRecord, Source: "twilio", Kind: "calls", IDs: []string{id}, Rows: 1,
		Values: values, Request: "r-" + id}
}

func list(t *testing.T, l *Log, entries ...understudy.AuditEntry) {
	t.Helper()
	for _, e := range entries {
		if err := l.RecordAction(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// What was done is found by each of its properties, the newest first, also across files.
func TestEntriesAreFound(t *testing.T) {
	f := newFolder(t)
	l := f.log()
	for range 40 {
		list(t, l, record("CA1", "+14155550100"), record("CA2"))
	}
	list(t, l, understudy.AuditEntry{Caller: person, Action: understudy.ActionSearch, Rows: 3,
		Values: []string{`from:"+1 (415) 555-0100" Failed`}})
	for _, c := range []struct {
		name string
		Filter
		want int
	}{
		{"all", Filter{Limit: MaxFound}, 81},
		{"limit", Filter{Limit: 7}, 7},
		{"record", Filter{ID: "CA2"}, 40},
		{"number, in another spelling", Filter{Value: "001 415 555 0100"}, 41},
		{"word, in another case", Filter{Value: "FAILED"}, 1},
		{"what was not searched", Filter{Value: "busy"}, 0},
		{"action", Filter{Action: understudy.ActionSearch}, 1},
		{"who", Filter{Caller: "ada", Kind: "calls", Limit: 90}, 80},
		{"another", Filter{Caller: "eve"}, 0},
		{"since", Filter{Since: f.now.Add(-time.Nanosecond)}, 1},
		{"until", Filter{Until: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}, 0},
	} {
		if got := f.find(c.Filter); len(got) != c.want {
			t.Errorf("%s: %d entries, want %d", c.name, len(got), c.want)
		}
	}
	var numbers []uint64
	filter := Filter{ID: "CA1", Limit: 9}
	for {
		found, err := f.reader().Search(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found.Entries {
			numbers = append(numbers, e.Number)
		}
		if filter.Before = found.Next; found.Next == "" {
			break
		}
	}
	if len(numbers) != 40 || !slices.IsSortedFunc(numbers, func(a, b uint64) int { return int(b) - int(a) }) {
		t.Errorf("page by page: %d entries %v", len(numbers), numbers)
	}
	if _, err := f.reader().Search(t.Context(), Filter{Before: "nowhere"}); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a place that is none: %v", err)
	}
	f.sound()
}

// No value that was searched for, and no number, stands in the log.
func TestValuesAreHashes(t *testing.T) {
	f := newFolder(t)
	l := f.log()
	list(t, l, record("+14155550100", "+14155550100"),
		understudy.AuditEntry{Caller: person, Action: understudy.ActionSearch, Values: []string{"pomegranate 4155550100 (whatsapp:+14155550100)"},
			Request: "+14155550100"},
		understudy.AuditEntry{Caller: person, Action: understudy.ActionRecord, Request: "call-14155550100"},
		understudy.AuditEntry{Caller: person, Action: understudy.ActionRecord, Request: "14155550100/2"},
		understudy.AuditEntry{Caller: person, Action: understudy.ActionRecord, Request: "1-415-555-0100"},
		understudy.AuditEntry{Caller: person, Action: understudy.ActionRecord, Request: "J2WMA6Q3EY-1a"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for path, data := range f.files() {
		for _, plain := range []string{"4155550100", "415-555-0100", "pomegranate"} {
			if bytes.Contains(data, []byte(plain)) {
				t.Errorf("%s holds %s", path, plain)
			}
		}
	}
	if !slices.ContainsFunc(f.find(Filter{}), func(e Entry) bool { return e.Request == "J2WMA6Q3EY-1a" }) {
		t.Error("a request id of our own is not as it was")
	}
	if n := len(f.find(Filter{ID: "+1 415 555 0100"})); n != 1 {
		t.Errorf("an id that is a number is found %d times", n)
	}
	other := newFolder(t)
	if f.key.Hash("+14155550100") == other.key.Hash("+14155550100") || f.key.Hash("a") == f.key.Hash("b") {
		t.Error("two keys, or two values, have one hash")
	}
}

func (f *folder) files() map[string][]byte {
	all := map[string][]byte{}
	err := filepath.WalkDir(filepath.Join(f.dir, "audit"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[path], err = os.ReadFile(path)
		return err
	})
	if err != nil || len(all) == 0 {
		f.t.Fatal(len(all), err)
	}
	return all
}

func TestWhatIsListed(t *testing.T) {
	agent := understudy.AuditEntry{Caller: program, Action: understudy.ActionSearch, AsPerson: true}
	for _, c := range []struct {
		name string
		Policy
		understudy.AuditEntry
		want bool
	}{
		{"a person's record", Policy{}, understudy.AuditEntry{Caller: person, Action: understudy.ActionRecord}, true},
		{"a person's list", Policy{}, understudy.AuditEntry{Caller: person, Action: understudy.ActionList}, false},
		{"a program's list", Policy{}, understudy.AuditEntry{Caller: program, Action: understudy.ActionList}, false},
		{"a program's record", Policy{}, understudy.AuditEntry{Caller: program, Action: understudy.ActionRecord}, false},
		{"a program sends", Policy{}, understudy.AuditEntry{Caller: program, Action: understudy.ActionSend}, true},
		{"an agent searches", Policy{}, agent, true},
		{"people: list", Policy{People: []understudy.Action{understudy.ActionList}},
			understudy.AuditEntry{Caller: person, Action: understudy.ActionList}, true},
		{"people: none", Policy{People: []understudy.Action{}}, understudy.AuditEntry{Caller: person, Action: understudy.ActionRecord}, false},
		{"programs: record", Policy{Programs: []understudy.Action{understudy.ActionRecord}},
			understudy.AuditEntry{Caller: program, Action: understudy.ActionRecord}, true},
		{"a role before all", Policy{Roles: map[string][]understudy.Action{"support": {understudy.ActionList}}},
			understudy.AuditEntry{Caller: person, Action: understudy.ActionRecord}, false},
		{"a role's program", Policy{Roles: map[string][]understudy.Action{"support": {understudy.ActionList}}},
			understudy.AuditEntry{Caller: program, Action: understudy.ActionList}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFolder(t)
			o := f.options()
			o.Policy = c.Policy
			l := New(o)
			list(t, l, c.AuditEntry)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if got := len(f.find(Filter{})) > 0; got != c.want {
				t.Errorf("listed: %v, want %v", got, c.want)
			}
		})
	}
}

// What programs do and is not listed is counted, by who did it, and the counts are in the log.
func TestProgramsAreCounted(t *testing.T) {
	f := newFolder(t)
	l := f.log()
	for range 30 {
		list(t, l, understudy.AuditEntry{Caller: program, Action: understudy.ActionList, Source: "twilio", Kind: "calls", Rows: 50})
	}
	l.writeCountsAndSign(t.Context())
	l.writeCountsAndSign(t.Context())
	all := f.find(Filter{})
	checktest.MustEqual(t, len(all), 1, "len(all)")
	checktest.Equal(t, all[0].Count, 30, "all[0].Count")
	checktest.Equal(t, all[0].Rows, 1500, "all[0].Rows")
	checktest.Equal(t, all[0].Caller, "reports", "all[0].Caller")
	if s := l.Stats(); s.Counted != 30 || s.Unsigned != 0 {
		t.Errorf("%+v", s)
	}
	f.sound()
}

// A list that a person looks at and that is not listed is counted, with its kind and rows.
func TestListsOfPeopleAreCounted(t *testing.T) {
	f := newFolder(t)
	l := f.log()
	person := understudy.Caller{Name: "ada", Grant: &understudy.Grant{Role: "support"}}
	for range 3 {
		list(t, l, understudy.AuditEntry{Caller: person, Action: understudy.ActionList, Source: "twilio", Kind: "messages", Rows: 50})
	}
	l.writeCountsAndSign(t.Context())
	all := f.find(Filter{})
	if len(all) != 1 {
		t.Fatalf("%d entries, want one: %+v", len(all), all)
	}
	e := all[0]
	checktest.Equal(t, e.Caller, "ada", "e.Caller")
	checktest.Equal(t, e.Count, 3, "e.Count")
	checktest.Equal(t, e.Rows, 150, "e.Rows")
	checktest.Equal(t, e.Kind, "messages", "e.Kind")
	f.sound()
}

// Each of several writers has a chain; the one that comes later goes on with one that is
// free.
func TestWritersHaveChains(t *testing.T) {
	f := newFolder(t)
	a, b := f.log(), f.log()
	list(t, a, record("CA1"))
	list(t, b, record("CA2"))
	list(t, a, record("CA3"))
	ids, err := ListChains(f.options().Dir)
	if err != nil || len(ids) != 2 {
		t.Fatalf("%v %v", ids, err)
	}
	var found []string
	for _, e := range f.find(Filter{}) {
		found = append(found, e.IDs[0])
	}
	if strings.Join(found, " ") != "CA3 CA2 CA1" {
		t.Errorf("over both chains: %v", found)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	list(t, f.log(), record("CA4"))
	if ids, _ = ListChains(f.options().Dir); len(ids) != 2 {
		t.Errorf("after both have ended: %v", ids)
	}
	f.sound()
}

// As long as the log cannot be written what must be listed is refused and the rest is not.
func TestALogThatCannotBeWritten(t *testing.T) {
	f := newFolder(t)
	o := f.options()
	if err := os.WriteFile(o.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	l := New(o)
	counted := understudy.AuditEntry{Caller: program, Action: understudy.ActionList}
	for range 2 {
		if err := l.RecordAction(t.Context(), record("CA1")); !errors.Is(err, understudy.ErrNotAudited) {
			t.Fatalf("%v", err)
		}
		list(t, l, counted)
	}
	made := understudy.AuditEntry{Caller: person, Action: understudy.ActionSend, What: understudy.WhatCreated}
	list(t, l, made) // it was done: nothing is refused any more
	if !strings.Contains(said.String(), "an action could not be written to the audit log") {
		t.Errorf("the server's log: %s", said.String())
	}
	if s := l.Stats(); s.Refused != 2 || s.Trouble == "" {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(o.Dir); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(reopenInterval)
	list(t, l, record("CA2"))
	// A file that cannot be begun ends the chain; it is opened again when it can.
	chain := filepath.Join(o.Dir, l.chain.id)
	if err := os.Rename(chain, chain+"-away"); err != nil {
		t.Fatal(err)
	}
	var failed error
	for i := 0; failed == nil && i < 100; i++ {
		failed = l.RecordAction(t.Context(), record("CA3"))
	}
	if !errors.Is(failed, understudy.ErrNotAudited) {
		t.Fatalf("%v", failed)
	}
	if err := os.Rename(chain+"-away", chain); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(reopenInterval)
	list(t, l, record("CA4"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.RecordAction(t.Context(), record("CA5")); !errors.Is(err, understudy.ErrNotAudited) {
		t.Errorf("a log that is closed: %v", err)
	}
	f.sound()
}

// An entry of a caller that leaves may be in the log or not; the log goes on.
func TestACallerThatLeaves(t *testing.T) {
	f := newFolder(t)
	l := f.log()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.RecordAction(ctx, record("CA1")); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	made := record("CA3")
	made.What = understudy.WhatCreated
	if err := l.RecordAction(ctx, made); err != nil || len(f.find(Filter{ID: "CA3"})) != 1 {
		t.Errorf("what was done for a caller that left is not listed: %v", err)
	}
	list(t, l, record("CA2"))
	if s := l.Stats(); s.Trouble != "" {
		t.Errorf("%+v", s)
	}
	f.sound()
}

// Entries of many callers at once are one chain.
func TestEntriesAtOnce(t *testing.T) {
	f := newFolder(t)
	o := f.options()
	o.Now = time.Now
	l := New(o)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 40 {
				if err := l.RecordAction(t.Context(), record("CA1", "+14155550100")); err != nil {
					t.Error(err)
				}
			}
			_, _ = f.reader().Search(t.Context(), Filter{})
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f.sound()
	if n := len(f.find(Filter{Limit: MaxFound})); n != 640 {
		t.Errorf("%d entries", n)
	}
}

// The oldest files go; what stays is verified. A chain that is not written any more goes
// as a whole.
func TestKeep(t *testing.T) {
	f := newFolder(t)
	a, b := f.log(), f.log()
	list(t, b, record("CA0"))
	for range 100 {
		list(t, a, record("CA1"))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(time.Hour)
	middle := f.now
	for range 100 {
		list(t, a, record("CA2"))
	}
	for range 2 { // the second finds nothing
		if err := a.cut(t.Context(), middle); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.find(Filter{ID: "CA0"})); n != 0 {
		t.Errorf("%d entries of the other chain", n)
	}
	if old, young := len(f.find(Filter{ID: "CA1"})), len(f.find(Filter{ID: "CA2"})); old > 20 || young != 100 {
		t.Errorf("%d old ones, %d young ones", old, young)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	f.sound()
	// Without the line that says so a missing beginning is a fault.
	r := f.verify()[0]
	files, err := wal.ListFiles(filepath.Join(f.options().Dir, r.Chain))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	w, err := wal.Open(filepath.Join(f.options().Dir, r.Chain), wal.Options{SegmentSize: 4 << 10})
	if err == nil {
		err = errors.Join(w.RemoveBefore(files[2]), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := f.verify()[0]; len(r.Faults) != 1 || !strings.Contains(r.Faults[0], "begins with entry") {
		t.Errorf("%q", r.Faults)
	}
}
