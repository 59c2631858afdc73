// What the store has to be told of writes, and how long the journal has them.

package writes

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

// journal numbers writes from 1 and keeps those that have not ended.
type journal struct {
	last  int64
	open  []int64
	names []string // of all writes
}

func (j *journal) Begin(about request.Invalidation) (int64, error) {
	j.last++
	j.open, j.names = append(j.open, j.last), append(j.names, about.ID)
	return j.last, nil
}

func (j *journal) End(n int64) {
	j.open = slices.DeleteFunc(j.open, func(o int64) bool { return o == n })
}

func (j *journal) UnendedWrites() ([]int64, []request.Invalidation) { return j.open, nil }

// A write stays in the journal until the store was told of it and, where two overlapped, upstream was asked.
func TestAWriteIsInTheJournalUntilItIsSettled(t *testing.T) {
	var j journal
	s, page, now := New("twilio", "calls", 7, &j), &understudy.Page{Body: []byte("{}")}, time.Unix(1, 0)
	for round, overlapping := range []int{1, 2} {
		var all []*Write
		for range overlapping {
			w, err := s.Begin("CA1")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, w)
		}
		for _, w := range all {
			if !w.End(now, "CA1", page) {
				t.Fatal("what the answer shows is not kept")
			}
		}
		p := s.Pending()
		checktest.MustEqual(t, len(p), 1, "round %d: len(p)", round)
		checktest.MustEqual(t, len(p[0].Versions), overlapping, "round %d: len(p[0].Versions)", round)
		checktest.MustEqual(t, p[0].Generation, s.Generation(), "round %d: p[0].Generation", round)
		checktest.MustEqual(t, len(j.open), overlapping, "round %d: len(j.open)", round)
		asked := 0
		confirm := func(end func()) { asked++; end() }
		if s.NoteStored("CA1", p[0].Generation, confirm); !s.IsPending("CA1") {
			t.Errorf("round %d: the store was not told yet what the answers show", round)
		}
		for range p[0].Versions {
			s.RemoveShown("CA1", true)
		}
		if s.NoteStored("CA1", p[0].Generation-1, confirm); !s.IsPending("CA1") {
			t.Errorf("round %d: the store was told of an earlier write alone", round)
		}
		s.NoteStored("CA1", p[0].Generation, confirm)
		checktest.True(t, !s.IsPending("CA1"), `round %d: s.IsPending("CA1") is true`, round)
		checktest.MustTrue(t, len(j.open) <= 0, "round %d: len(j.open) is %v, want <= 0", round, len(j.open))
		checktest.Equal(t, s.pendingBytes, 0, "round %d: s.pendingBytes", round)
		checktest.Equal(t, asked, overlapping-1, "round %d: asked", round)
	}
	w, _ := s.Begin("CA4")
	w.End(now, "CA4", page)
	s.RemoveShown("CA4", false) // the store can never keep it
	asked := 0
	s.NoteStored("CA4", s.Generation(), func(end func()) {
		if asked++; len(j.open) != 1 {
			t.Errorf("upstream is not asked yet, in the journal %v", j.open)
		}
		end()
	})
	if asked != 1 || len(j.open) > 0 {
		t.Errorf("of an answer that is not kept upstream was asked %d times, then in the journal %v", asked, j.open)
	}
	w, _ = s.Begin("CA2")
	w.Drop()
	checktest.MustTrue(t, len(j.open) <= 0, "after a write that changed nothing: len(j.open) is %v, want <= 0",
		len(j.open))
	checktest.True(t, !s.IsPending("CA2"), `after a write that changed nothing: s.IsPending("CA2") is true`)
	checktest.True(t, len(s.underWay) <= 0, "after a write that changed nothing: len(s.underWay) is %v, want <= 0",
		len(s.underWay))
	w, _ = s.Begin("CA3")
	if w.End(now, "CA3", &understudy.Page{Body: bytes.Repeat([]byte(" "), maxPendingBytes+1)}) {
		t.Error("an answer beyond the bound is kept")
	}
}

// Who reads a list may change or delete a record before the answer of its creation has come. What that answer shows
// is older then, so upstream is asked.
func TestACreationAnsweredAfterALaterWriteIsLookedUp(t *testing.T) {
	for name, c := range map[string]struct {
		other string
		asked int
	}{"the same record": {"CA1", 1}, "it is not known which": {"", 1}, "another one": {"CA2", 0}} {
		t.Run(name, func(t *testing.T) {
			var j journal
			s, page, now := New("twilio", "calls", 7, &j), &understudy.Page{Body: []byte("{}")}, time.Unix(1, 0)
			creation, _ := s.Begin("")
			other, _ := s.Begin(c.other)
			other.End(now, c.other, nil)
			s.NoteStored(c.other, s.Generation(), func(end func()) { end() })
			creation.End(now, "CA1", page)
			s.RemoveShown("CA1", true)
			left, named := len(j.open), slices.Contains(j.names[2:], "CA1")
			asked := 0
			if s.NoteStored("CA1", s.Generation(), func(end func()) { asked++; end() }); asked != c.asked {
				t.Errorf("upstream was asked %d times, want %d", asked, c.asked)
			}
			if left != 1+c.asked || named != (c.asked > 0) {
				t.Errorf("%d writes were in the journal, of %q", left, j.names)
			}
			if len(j.open) > 0 {
				t.Errorf("then %v are", j.open)
			}
		})
	}
}

// TestManyUnseenWritesAreSeenOnce: after all records were shown, writes to many records need no longer be looked for.
func TestManyUnseenWritesAreSeenOnce(t *testing.T) {
	set, now := New("twilio", "calls", 0, nil), time.Unix(1, 0)
	for n := range maxUnseen + 1 {
		set.Note(now, strconv.Itoa(n))
	}
	at, _, many := set.UnseenWrites()
	checktest.True(t, many, "more records were written than are remembered, and this is not noticed")
	set.NoteAllSeen(at.Add(-1))
	_, _, many = set.UnseenWrites()
	checktest.True(t, many, "what was shown before the last write counts")
	set.NoteAllSeen(at)
	_, _, many = set.UnseenWrites()
	checktest.True(t, !many, "writes that were shown are looked for")
}

// TestWriteOfAnotherProcessIsNotTakenForAnOwnOne: the store numbers a write of another process as this process has numbered a
// write of which the store does not know yet.
func TestWriteOfAnotherProcessIsNotTakenForAnOwnOne(t *testing.T) {
	set := New("twilio", "calls", 5, nil)
	w, err := set.Begin("a")
	checktest.MustNoError(t, err, "begin")
	w.End(time.Now(), "a", nil)
	read := set.Now()
	checktest.True(t, set.AdvanceTo(time.Now(), 6, 0), "the write of the other process is not noticed")
	checktest.True(t, set.IsStale("b", read), "a page read before is not outdated")
	read = set.Now()
	checktest.True(t, !set.AdvanceTo(time.Now(), 7, 1), "the own write counts as one of another process")
	checktest.True(t, !set.IsStale("b", read), "a page read since is outdated")
	checktest.Equal(t, set.Generation(), 7, "generation")
	checktest.True(t, set.AdvanceTo(time.Now(), 9, 1), "the write of another process before an own one is not noticed")
	read = set.Now()
	checktest.True(t, set.AdvanceTo(time.Now(), 11, 0, "c", "d"), "the writes of other processes to two records are not noticed")
	checktest.True(t, set.IsStale("c", read) && set.IsStale("d", read), "the records read before are not outdated")
	checktest.True(t, set.IsStale("", read), "the lists read before are not outdated")
	checktest.True(t, !set.IsStale("b", read), "a record to which nobody has written is outdated")
}
