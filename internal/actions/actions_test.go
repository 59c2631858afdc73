package actions_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/actions"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// open makes a runner over a store of its own.
func open(t *testing.T, path string) (*actions.Runner, func()) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	r := actions.New(actions.Options{Store: db.Actions})
	return r, func() {
		if err := errors.Join(r.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

func done(id string, begun *int) func(context.Context) actions.Result {
	return func(context.Context) actions.Result {
		*begun++
		return actions.Result{State: actions.Done, ID: id}
	}
}

func TestOnce(t *testing.T) {
	path := storetest.File(t)
	r, end := open(t, path)
	begun := 0
	for range 3 {
		got, err := r.RunOnce(t.Context(), "anna", "send 1", done("SM1", &begun))
		checktest.MustNoError(t, err, "got %+v", got)
		checktest.Equal(t, got.ID, "SM1", "got.ID")
		checktest.Equal(t, got.State, actions.Done, "got.State")
	}
	if _, err := r.RunOnce(t.Context(), "bert", "send 1", done("SM2", &begun)); err != nil || begun != 2 {
		t.Errorf("another person's: %v, begun %d times", err, begun)
	}
	end()
	r, end = open(t, path)
	defer end()
	{
		got, err := r.RunOnce(t.Context(), "anna", "send 1", done("SM3", &begun))
		checktest.MustNoError(t, err, "after a restart; got %+v", got)
		checktest.Equal(t, got.ID, "SM1", "after a restart: got.ID")
		checktest.Equal(t, begun, 2, "after a restart: begun; got %+v", got)
	}
}

// Who asks while it is being done waits for it, and goes without it: the work goes on.
func TestTheWorkOutlivesWhoAsked(t *testing.T) {
	path := storetest.File(t)
	synctest.Test(t, func(t *testing.T) {
		r, end := open(t, path)
		defer end()
		begun := 0
		slow := func(ctx context.Context) actions.Result {
			begun++
			time.Sleep(20 * time.Second)
			if ctx.Err() != nil {
				return actions.Result{State: actions.Unknown}
			}
			return actions.Result{State: actions.Done, ID: "SM1"}
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := r.RunOnce(ctx, "anna", "send", slow); !errors.Is(err, actions.ErrUnderWay) {
			t.Errorf("who left: %v", err)
		}
		{
			got, err := r.RunOnce(t.Context(), "anna", "send", slow)
			checktest.MustNoError(t, err, "who asks again; got %+v", got)
			checktest.Equal(t, got.ID, "SM1", "who asks again: got.ID")
			checktest.Equal(t, begun, 1, "who asks again: begun; got %+v", got)
		}
	})
}

// What takes too long, panics, or is ended by the server's end has an unknown outcome, and
// is not done again.
func TestUnknownOutcomes(t *testing.T) {
	waits := func(ctx context.Context) actions.Result { <-ctx.Done(); return actions.Result{State: actions.Unknown} }
	for name, work := range map[string]func(context.Context) actions.Result{
		"waits": waits, "panics": func(context.Context) actions.Result { panic("no") },
	} {
		path := storetest.File(t)
		synctest.Test(t, func(t *testing.T) {
			r, end := open(t, path)
			defer end()
			begun := 0
			for range 2 {
				got, err := r.RunOnce(t.Context(), "anna", "send", work)
				if err != nil || got.State != actions.Unknown {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
				work = done("SM1", &begun)
			}
			if begun > 0 {
				t.Errorf("%s: it was done again", name)
			}
		})
	}
	path := storetest.File(t)
	synctest.Test(t, func(t *testing.T) {
		r, end := open(t, path)
		ended := make(chan error, 1)
		go func() { _, err := r.RunOnce(t.Context(), "anna", "send", waits); ended <- err }()
		synctest.Wait()
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := r.RunOnce(t.Context(), "anna", "other", waits); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A claim without a result is being done by another process, for as long as that may take.
func TestAClaimWithoutAResult(t *testing.T) {
	path := storetest.File(t)
	synctest.Test(t, func(t *testing.T) {
		r, end := open(t, path)
		defer end()
		if _, _, _, err := r.Options.Store.ClaimAction(t.Context(), "anna\x00send", time.Now()); err != nil {
			t.Fatal(err)
		}
		begun := 0
		if _, err := r.RunOnce(t.Context(), "anna", "send", done("", &begun)); !errors.Is(err, actions.ErrUnderWay) {
			t.Errorf("at once: %v", err)
		}
		time.Sleep(time.Minute + time.Second)
		{
			got, err := r.RunOnce(t.Context(), "anna", "send", done("", &begun))
			checktest.MustNoError(t, err, "later; got %+v", got)
			checktest.Equal(t, got.State, actions.Unknown, "later: got.State")
			checktest.True(t, begun <= 0, "later: begun is %v, want <= 0; got %+v", begun, got)
		}
	})
}

func TestTooManyAtOnce(t *testing.T) {
	path := storetest.File(t)
	synctest.Test(t, func(t *testing.T) {
		r, end := open(t, path)
		defer end()
		release := make(chan struct{})
		for i := range 16 {
			go func() {
				_, _ = r.RunOnce(context.Background(), "anna", string(rune('a'+i)), func(context.Context) actions.Result {
					<-release
					return actions.Result{State: actions.Done}
				})
			}()
		}
		synctest.Wait()
		begun := 0
		if _, err := r.RunOnce(t.Context(), "anna", "one more", done("", &begun)); !errors.Is(err, actions.ErrBusy) {
			t.Errorf("one more: %v", err)
		}
		if _, err := r.RunOnce(t.Context(), "bert", "another", done("", &begun)); err != nil || begun != 1 {
			t.Errorf("another person: %v", err)
		}
		close(release)
	})
}
