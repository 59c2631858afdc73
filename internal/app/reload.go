// Reload: the settings and the secrets they name, read again while serving.

package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/config"
	"understudy/internal/diagnostics"
	"understudy/spec"
)

// reloader reads the settings again.
type reloader struct{ *App }

// reloads reads the settings again whenever it is told to, until ctx ends.
func (h reloader) reloads(ctx context.Context) error {
	for {
		select {
		case <-h.opts.Hangup:
			if err := audits(h).hungUp(ctx); err != nil {
				h.reopenAccessLog()
				h.log.Error("settings not loaded; the former ones stay", "err", err)
				continue
			}
			_, _ = h.reload(ctx) // the log has the error
		case <-ctx.Done():
			return nil
		}
	}
}

// reload opens the access log again, reads settings, secrets and users again and applies
// what can be applied while serving; restart names what cannot. Anything wrong with them is one line in
// the log, and everything stays as it was.
func (h reloader) reload(ctx context.Context) (restart []string, err error) {
	h.reads.one.Lock()
	defer h.reads.one.Unlock()
	h.reopenAccessLog()
	cfg, restart, err := h.load(ctx)
	h.reads.done(time.Now(), restart, err)
	switch {
	case err != nil:
		h.log.Error("settings not loaded; the former ones stay", "err", err)
	case len(restart) > 0:
		h.log.Warn("settings loaded again; some need a restart", "restart", strings.Join(restart, ", "))
	default:
		h.log.Info("settings loaded again", "credentials", len(cfg.Credentials), "roles", len(cfg.Roles))
	}
	return restart, err
}

// reopenAccessLog opens the file of the access log again, so that lines go to its path
// after a rename (logrotate).
func (h reloader) reopenAccessLog() {
	if h.accessFile == nil {
		return
	}
	if err := h.access.Flush(); err != nil {
		h.log.Error("log.access: lines that waited are lost", "err", err)
	}
	if err := h.accessFile.Reopen(); err != nil {
		h.log.Error("log.access cannot be opened again; lines still go to the former file", "err", err)
	}
}

// load reads everything first, and applies only what can no longer fail.
func (h reloader) load(ctx context.Context) (cfg *config.Settings, restart []string, err error) {
	if cfg, err = h.opts.Again(); err != nil {
		return nil, nil, err
	}
	if err := h.sameSources(cfg); err != nil {
		return nil, nil, err
	}
	again, err := cfg.ReadSources(h.opts.Folder)
	if err != nil {
		return nil, nil, err
	}
	replaced, err := h.reads.secrets.NeedRestart(ctx, cfg, h.opts.Secrets)
	if err != nil {
		return nil, nil, err
	}
	secrets, polls := map[string][]understudy.Secret{}, map[string][]string{}
	for _, src := range h.sources {
		s := cfg.Sources[src.Name]
		secrets[src.Name] = []understudy.Secret{{}}
		if src.Spec.Auth.Style != "none" {
			if secrets[src.Name], err = s.ReadSecrets(ctx, src.Spec, h.opts.Secrets); err != nil {
				return nil, nil, fmt.Errorf("sources.%s.%w", src.Name, err)
			}
		}
		polled := &spec.Source{Name: src.Name, Spec: src.Spec, User: src.User, Polls: s.Polls} // the spec in use
		if err := config.CheckPolls(polled, s); err != nil {
			return nil, nil, fmt.Errorf("sources.%s.polls: %w", src.Name, err)
		}
		polls[src.Name] = polled.Polls
	}
	p, err := h.policyOf(ctx, cfg, h.opts)
	if err == nil {
		p, err = h.withMade(p, cfg)
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := h.handlerSet(cfg, p)
	if err != nil {
		return nil, nil, err
	}
	if err := h.feed.SetPolicy(ctx, p.feed()); err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	if err := h.poll(polls); err != nil {
		return nil, nil, errors.Join(err, d.Close(), h.feed.SetPolicy(ctx, h.installed.policy.feed()))
	}
	h.apply(cfg, secrets)
	h.install(d)
	restart = slices.Concat(h.changedSpecs(again), replaced, config.NeedRestart(h.cfg, cfg))
	slices.Sort(restart)
	return cfg, slices.Compact(restart), nil
}

// changedSpecs names the sources whose spec file has another text than at the start: a
// spec is in force until the server ends.
func (h reloader) changedSpecs(again []*spec.Source) (names []string) {
	for i, src := range h.sources { // in the order of their names, as again
		if again[i].SpecSum != src.SpecSum && again[i].SpecSum != ([sha256.Size]byte{}) && src.SpecSum != ([sha256.Size]byte{}) {
			names = append(names, "sources."+src.Name+".spec")
		}
	}
	return names
}

// sameSources refuses settings that add or take away a source: every port,
// file and kind of it would have to come or go.
func (h reloader) sameSources(cfg *config.Settings) error {
	now, want := slices.Sorted(maps.Keys(h.cfg.Sources)), slices.Sorted(maps.Keys(cfg.Sources))
	if !slices.Equal(now, want) {
		return fmt.Errorf("sources: %s are running and %s are wanted; a source comes or goes with a restart", strings.Join(now, ", "),
			strings.Join(want, ", "))
	}
	return nil
}

// poll replaces the polls of every source, or of none.
func (h reloader) poll(polls map[string][]string) error {
	for i, src := range h.sources {
		err := h.mirror.SetPolls(src.Name, polls[src.Name])
		if err == nil {
			continue
		}
		for _, done := range h.sources[:i] {
			was := &spec.Source{Name: done.Name, Spec: done.Spec, User: done.User, Polls: h.live.Load().Sources[done.Name].Polls}
			err = errors.Join(err, config.CheckPolls(was, h.live.Load().Sources[done.Name]),
				h.mirror.SetPolls(done.Name, was.Polls))
		}
		return err
	}
	return nil
}

// apply hands the packages what they take while they run.
func (h reloader) apply(cfg *config.Settings, secrets map[string][]understudy.Secret) {
	for _, src := range h.sources {
		s, c := cfg.Sources[src.Name], h.clients[src.Name]
		c.SetBudget(s.Rate, s.Concurrency)
		if err := h.mirror.SetRate(src.Name, s.Rate); err != nil {
			h.log.Error("settings: rate", "source", src.Name, "err", err)
		}
		if err := errors.Join(h.mirror.SetAnswers(src.Name, s.Answers), h.mirror.SetChecks(src.Name, s.Checks)); err != nil {
			h.log.Error("settings: answers", "source", src.Name, "err", err)
		}
		c.SetQueue(cfg.Limits.Queue)
		// Also when it is the same: what refused it may have changed its mind.
		c.SetCredential("", secrets[src.Name][0], secrets[src.Name][1:]...)
		h.signatures.set(src.Name, secrets[src.Name][0])
	}
	h.mirror.SetAges(config.Ages(&cfg.Mirror))
	h.mirror.SetLimits(config.MirrorLimits(&cfg.Limits))
	h.exports.limit(cfg)
	h.searching.columns.SetLimit(config.ColumnsMemory(cfg, os.ReadFile))
	if h.audit != nil {
		h.audit.SetPolicy(cfg.AuditPolicy())
	}
	for _, f := range h.servers {
		f.SetLimit(cfg.Limits.Connections)
	}
	h.live.Store(cfg)
}

// loads remembers when settings were read, and how the last reading went.
type reloadStatus struct {
	one  sync.Mutex // held while they are read
	mu   sync.Mutex
	last diagnostics.Settings

	policies atomic.Int64 // that were put in force
	secrets  config.SecretSums
}

func (l *reloadStatus) now() diagnostics.Settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.last
	s.Policy = l.policies.Load()
	return s
}

// done notes a reading; restart names what waits for a restart.
func (l *reloadStatus) done(at time.Time, restart []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.last.FailedAt, l.last.Error = known(at), understudy.PlainText(err)
		return
	}
	l.last = diagnostics.Settings{LoadedAt: known(at), NeedRestart: restart}
}
