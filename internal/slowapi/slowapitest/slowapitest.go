// Package slowapitest starts a slowapi for the length of a test and sends requests to it.
package slowapitest

import (
	"net/http/httptest"
	"testing"
	"time"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

// Credentials of the main account, and the path above all its lists.
const (
	Account = "AC00000000000000000000000000000001"
	Token   = "slowapitoken"
	Root    = "/2010-04-01/Accounts/" + Account
)

// Epoch dates the newest record of a world whose options name no other date.
var Epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// API is a server under test. Its methods fail the test T when the server cannot be reached.
type API struct {
	T      *testing.T
	Server *slowapi.Server
	Web    *httptest.Server
}

// Start runs a server until the test ends.
func Start(t *testing.T, o slowapi.Options) API {
	t.Helper()
	server, err := slowapi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return API{t, server, web}
}

// Serve answers a GET of the main account without a network.
func Serve(s *slowapi.Server, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	r.SetBasicAuth(Account, Token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// NewWorld returns a world as a server with such options has it when it starts.
func NewWorld(records int64, seed uint64, epoch time.Time) *world.World {
	return world.New(&world.World{
		Seed: seed, Records: records, Epoch: epoch, Account: Account, Token: Token, RealTime: time.Now,
		Accounts: kinds.Accounts, Kinds: kinds.All, Shapes: kinds.Shapes(),
	})
}

// ParseTime reads a date of a record, and fails the test when it is none.
func ParseTime(t *testing.T, date any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC1123Z, date.(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}
