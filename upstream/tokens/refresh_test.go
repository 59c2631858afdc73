// Several processes that share refresh tokens, each of which may be used once.

package tokens

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// rotating is a server each of whose refresh tokens is valid once.
type rotating struct {
	mu       sync.Mutex
	valid    string
	issued   int
	refused  int
	received chan bool // receives a value for each request, unless it is nil
	before   chan bool // an exchange waits for a value before it begins, unless it is nil
	after    chan bool // an exchange waits for a value before it is answered, unless it is nil
}

func (s *rotating) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	used := r.PostFormValue("refresh_token")
	s.mu.Lock()
	received, before, after := s.received, s.before, s.after
	s.received, s.before, s.after = nil, nil, nil
	s.mu.Unlock()
	if received != nil {
		received <- true
	}
	if before != nil {
		<-before
	}
	s.mu.Lock()
	ok := used == s.valid
	if ok {
		s.issued++
		s.valid = fmt.Sprint("refresh-", s.issued)
	} else {
		s.refused++
	}
	n := s.issued
	s.mu.Unlock()
	if after != nil {
		received <- true
		<-after
	}
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	fmt.Fprintf(w, `{"access_token":"access-%d","expires_in":3600,"refresh_token":"refresh-%d"}`, n, n)
}

var firstToken = understudy.NewSecret("refresh-0")

// twoIssuers returns the issuers of two processes on one database, and by how much the clock of the second is ahead.
func twoIssuers(t *testing.T) (server *rotating, both [2]*Issuer, ahead *atomic.Int64) {
	t.Helper()
	server, ahead = &rotating{valid: firstToken.Reveal()}, &atomic.Int64{}
	kv := &memory{of: map[string][]byte{}}
	for i := range both {
		both[i] = issuer(t, Options{Kind: RefreshToken, KV: kv}, server.ServeHTTP)
	}
	both[1].o.Now = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	return server, both, ahead
}

func TestProcessesRefreshOnce(t *testing.T) {
	server, both, _ := twoIssuers(t)
	for _, i := range []int{0, 1, 0} {
		token, _, err := both[i].Issue(t.Context(), firstToken)
		checktest.MustNoError(t, err, "issue at process %d", i)
		checktest.Equal(t, token.Reveal(), fmt.Sprint("access-", server.issued), "token of process %d", i)
	}
	checktest.Equal(t, server.issued, 2, "tokens at the start, when the first process has learned of that of the second")
	const rounds = 5
	for round := range rounds {
		var tokens [2]string
		var all sync.WaitGroup
		for i, s := range both {
			all.Go(func() {
				token, _, err := s.Issue(t.Context(), firstToken)
				checktest.NoError(t, err, "round %d at process %d", round, i)
				tokens[i] = token.Reveal()
			})
		}
		all.Wait()
		checktest.Equal(t, tokens[0], tokens[1], "tokens of the processes in round %d", round)
	}
	checktest.Equal(t, server.refused, 0, "refused requests")
	checktest.Equal(t, server.issued, 2+rounds, "tokens that were requested")
}

// TestDeadProcessIsReplaced: a process that ended while it requested a token holds the others up only for a while.
func TestDeadProcessIsReplaced(t *testing.T) {
	_, both, ahead := twoIssuers(t)
	v, err := both[0].openVault(firstToken)
	checktest.MustNoError(t, err, "vault")
	_, err = both[0].claim(t.Context(), v, "dead")
	checktest.MustNoError(t, err, "claim")
	both[1].o.Now = func() time.Time { return start.Add(time.Duration(ahead.Add(int64(exchangeTimeout / 3)))) }
	token, _, err := both[1].Issue(t.Context(), firstToken)
	checktest.MustNoError(t, err, "issue")
	checktest.Equal(t, token.Reveal(), "access-1", "token of the other process")
	checktest.True(t, time.Duration(ahead.Load()) > exchangeTimeout, "it waited only %v", time.Duration(ahead.Load()))
}

// TestPausedProcessUndoesNothing: a process is paused while it requests a token, and another process takes over.
func TestPausedProcessUndoesNothing(t *testing.T) {
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server knows of its request: %v", used), func(t *testing.T) {
			server, both, ahead := twoIssuers(t)
			go1 := make(chan bool)
			if server.received = make(chan bool, 2); used {
				server.after = go1
			} else {
				server.before = go1
			}
			received := server.received
			ended := make(chan error)
			go func() {
				_, _, err := both[0].Issue(t.Context(), firstToken)
				ended <- err
			}()
			<-received
			if used {
				<-received
			}
			both[1].o.Now = func() time.Time { return start.Add(time.Duration(ahead.Add(int64(exchangeTimeout)))) }
			_, _, err := both[1].Issue(t.Context(), firstToken)
			checktest.Equal(t, err == nil, !used, "whether the other process gets a token (%v)", err)
			both[1].o.Now = func() time.Time { return start }
			go1 <- true
			err = <-ended
			checktest.Equal(t, err == nil, used, "whether the paused process gets a token (%v)", err)
			for i, s := range both {
				_, _, err := s.Issue(t.Context(), firstToken)
				checktest.NoError(t, err, "issue at process %d afterwards", i)
			}
			checktest.Equal(t, server.refused, 1, "refused requests")
		})
	}
}
