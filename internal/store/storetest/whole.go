// The rules of pages that are stored whole: their records are not kept.

package storetest

import (
	"bytes"
	"testing"

	"understudy"
)

// wholeErased stores pages whose records are not kept: they are no records, and go with one that is
// known, with any person, and when one of them is forgotten.
func wholeErased(t *testing.T, s *erasingSuite) {
	whole := func(uri string, rows ...row) *understudy.Page {
		p := list(uri, at(1), rows...)
		p.NotStored = "it was asked otherwise"
		return p.OutageCopy()
	}
	p := whole("/a?x=1", call(1, "x"), call(2, "x"))
	s.suite.wantChanges(s.suite.save(p).Changes)
	s.suite.noRecord("calls", sid(1))
	got, err := s.suite.ReadPage(t.Context(), p.Key)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Body, p.Body) {
		t.Errorf("the body is %s", got.Body)
	}
	if got.NotStored != "it was asked otherwise" || !got.Superseded {
		t.Errorf("it may be answered as fresh: %q, %v", got.NotStored, got.Superseded)
	}
	if len(got.Rows) != 2 || got.Rows[1].ID != sid(2) || got.Rows[1].Start != p.Rows[1].Start || got.Rows[1].End != p.Rows[1].End {
		t.Errorf("its rows are %+v", got.Rows)
	}
	mustVerify(s.suite.T, s.suite.Store)
	other := whole("/b?x=1", call(3, "x"))
	s.suite.save(other)
	s.suite.save(instance("/1", at(2), call(1, "x")))
	s.suite.save(gone("/1", at(3), sid(1), 404))
	s.suite.noPage(p)
	s.carry("deleted 1 1 1")
	s.suite.noPage(p)
	unknown := whole("/u?x=1", call(7, "x"))
	s.suite.save(unknown)
	s.suite.save(gone("/7", at(4), sid(7), 404))
	s.suite.noPage(unknown)
	if _, err := s.suite.ReadPage(t.Context(), other.Key); err != nil {
		t.Errorf("a page that shows other records went, too: %v", err)
	}
	s.suite.save(p)
	s.suite.save(instance("/1", at(1000), call(1, "x")))
	if n, _, err := s.suite.ForgetRecord(t.Context(), Source, "calls", sid(1)); err != nil || n != 2 {
		t.Fatalf("%d pages were forgotten, %v", n, err)
	}
	s.suite.noPage(p)
	if _, f, err := s.e.EraseNumber(t.Context(), Source, anna); err != nil || f.Records() != 0 {
		t.Fatalf("found %+v, %v", f, err)
	}
	s.suite.noPage(other)
	said := messages("/m?x=1", at(1), Epoch, message(1, anna, ours, "hi"))
	said.NotStored = "it was asked otherwise"
	if how := s.suite.save(said.OutageCopy()).Page.NotStored; how == "" {
		t.Error("a kind whose texts upstream takes back is stored whole")
	}
	s.suite.noPage(said)
}
