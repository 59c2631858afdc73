package access

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// TestASightLooksUpOnce: a list is asked for, read and shown with one look at the policy, and once more the time alone:
// a grant that ends while upstream is waited for shows nothing.
func TestASightLooksUpOnce(t *testing.T) {
	looks, now := 0, time.Unix(1_700_000_000, 0)
	g, err := NewWith(Options{Specs: map[string]*spec.Spec{"twilio": twilio(t)}, Roles: Roles{"support": support},
		Now: func() time.Time { looks++; return now }})
	if err != nil {
		t.Fatal(err)
	}
	list := target(t, g.specs["twilio"], "twilio", "/2010-04-01/Accounts/"+account+"/Calls.json", "PageSize=50")
	for _, role := range []string{"support", understudy.RoleAll} {
		c := as(role)
		ends := *c.Grant
		ends.Expires = now.Add(time.Minute)
		c.Grant = &ends
		looks = 0
		s := g.Visibility(c, list)
		if err := s.CheckRead(list); err != nil {
			t.Fatal(err)
		}
		ask := func(context.Context, request.Request) (*request.Response, error) {
			return &request.Response{Page: callsPage()}, nil
		}
		a, err := s.RequestPage(t.Context(), request.Request{Target: list}, ask)
		if err != nil {
			t.Fatal(err)
		}
		a.Page.Key = list.Key
		view, err := s.MakeView(a.Page)
		checktest.MustNoError(t, err, "%s", role)
		checktest.Equal(t, view.Unredacted, (role == understudy.RoleAll), "%s: view.Unredacted", role)
		checktest.Equal(t, s.SeesAll, view.Unredacted, "%s: s.SeesAll", role)
		if looks != 2 {
			t.Errorf("%s: the time was read %d times, want 2", role, looks)
		}
		now = now.Add(time.Hour)
		if _, err := s.MakeView(a.Page); !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s: after the grant's end: %v", role, err)
		}
		now = now.Add(-time.Hour)
	}
}

// pageFor asks as a caller without a look at what it may request.
func pageFor(t *testing.T, g *Gate, c understudy.Caller, a request.Request, ask Asker) (*request.Response, error) {
	t.Helper()
	s := g.Visibility(c, a.Target)
	return s.RequestPage(t.Context(), a, ask)
}
