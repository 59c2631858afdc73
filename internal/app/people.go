// People: who signs in at the viewer, as the settings say.

package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"

	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/signin"
)

// visitors are what outlives any policy of who may come in.
type visitors struct {
	salt     []byte // of the credentials we issued
	guesses  *callers.Guesses
	sessions *signin.Sessions
}

func newVisitors() visitors {
	salt := []byte(rand.Text())
	return visitors{salt: salt, guesses: callers.NewGuesses(sha256.Sum256(salt), time.Now), sessions: signin.NewSessions(time.Now)}
}

// signIns are the ways in which people sign in; one of both is nil, or both.
type signIns struct {
	people *signin.People // by a form: they have sessions
	header *signin.Header
}

// callers are what the book of callers asks.
func (s signIns) callers() callers.People {
	switch {
	case s.people != nil:
		return s.people
	case s.header != nil:
		return s.header
	}
	return nil
}

// signIns are those of the settings.
func (v *visitors) signIns(cfg *config.Settings, folder string) (s signIns, err error) {
	s.header = cfg.HeaderSignIn(time.Now)
	s.people, err = v.people(cfg, folder)
	return s, err
}

// people are those who may sign in by a form; nil: nobody does.
func (v *visitors) people(cfg *config.Settings, folder string) (*signin.People, error) {
	users, err := cfg.ReadUsers(folder)
	if users == nil || err != nil {
		return nil, err
	}
	return &signin.People{Sessions: v.sessions, Users: users, Guesses: v.guesses,
		Secure: strings.HasPrefix(cfg.Viewer.PublicURL, "https://")}, nil
}

// endGone ends the sessions of those who may not come in any more, with what they
// have open.
func (h *App) endGone(people *signin.People) {
	if people == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), noteTime)
	defer cancel()
	if err := people.EndGone(ctx); err != nil {
		h.log.Error("sessions that ended are still in the store; they open nothing", "err", err)
	}
}

// noteTime bounds the writing of notes.
const noteTime = 5 * time.Second
