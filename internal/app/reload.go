// This file reads the settings and secrets again while the server runs.

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/certificate"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/feed"
	"understudy/internal/forecast"
	"understudy/internal/push"
	"understudy/internal/search/columns"
	"understudy/internal/tables"
	"understudy/internal/watch"
	"understudy/kit/lockwatch"
	"understudy/kit/logline"
	"understudy/kit/retry"
	"understudy/mirror"
	"understudy/spec"
	"understudy/upstream"
)

// liveSettings are the current settings, the log that they apply to, and the result of the last attempt to read them.
type liveSettings struct {
	lines    *logline.Handler // writes the server log
	levels   logline.Levels
	current  atomic.Pointer[config.Settings]                // the settings in use
	upstream atomic.Pointer[map[string][]understudy.Secret] // the secrets of the sources
	secrets  config.SecretSums
	policies atomic.Int64  // the number of policies that have become current
	restored time.Time     // when the data folder was restored; Build reads it
	paused   bool          // whether the restored folder is paused; Build reads it
	resumed  chan struct{} // has a value when the pause has ended

	mu         lockwatch.Mutex
	lastReload diagnostics.Settings // the result of the last attempt to read the settings
}

func newLiveSettings(o Options) *liveSettings {
	l := &liveSettings{resumed: make(chan struct{}, 1)}
	l.lines = logline.New(o.Stderr, logline.Options{Levels: &l.levels, NoColor: os.Getenv("NO_COLOR") != ""})
	l.setLog(o.Settings)
	if o.Offline {
		l.levels.Set(max(slog.LevelWarn, o.Settings.Log.Level.Std()), nil) // a command prints its result itself
	}
	l.current.Store(o.Settings)
	l.noteLoad(nil, nil)
	return l
}

// setLog applies the settings of the server log.
func (l *liveSettings) setLog(cfg *config.Settings) {
	packages := map[string]slog.Level{}
	for name, level := range cfg.Log.Levels {
		packages[name] = level.Std()
	}
	l.lines.SetFormat(cfg.Log.Format.Std())
	l.levels.Set(cfg.Log.Level.Std(), packages)
}

// ErrResumed means that the pause of a restored data folder has ended, so the server must start again.
var ErrResumed = errors.New("the pause has ended")

// resume ends the pause of a restored data folder.
func (l *liveSettings) resume(dir string) error {
	err := os.Rename(filepath.Join(dir, datadir.PausedFile), filepath.Join(dir, datadir.RestoredFile))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: nothing is paused", understudy.ErrInvalid)
	}
	understudy.Wake(l.resumed)
	return err
}

// awaitResume returns ErrResumed when the pause ends.
func (l *liveSettings) awaitResume(ctx context.Context) error {
	select {
	case <-l.resumed:
		return ErrResumed
	case <-ctx.Done():
		return nil
	}
}

// hookSecret returns the secret with which the upstream of a source signs its callbacks.
func (l *liveSettings) hookSecret(source string) understudy.Secret {
	return (*l.upstream.Load())[source][0]
}

// status returns when the current settings were read, and the result of the last attempt to read them.
func (l *liveSettings) status() diagnostics.Settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.lastReload
	s.Policy = l.policies.Load()
	return s
}

// noteLoad notes an attempt to read the settings. restart names the changes that need a restart.
func (l *liveSettings) noteLoad(restart []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now().UTC()
	if err != nil {
		l.lastReload.FailedAt, l.lastReload.Error = at, understudy.PlainText(err)
		return
	}
	l.lastReload = diagnostics.Settings{LoadedAt: at, NeedRestart: restart}
}

// enforcer applies new settings and policies.
type enforcer struct {
	opts     Options
	settings *liveSettings
	policies *policyReader
	sources  []*spec.Source
	log      *slog.Logger
	build    func(*config.Settings, policy) (*handlerSet, error)

	mu      lockwatch.Mutex            // held while settings are read
	current atomic.Pointer[handlerSet] // the current handlers; nil before the first policy

	// ports and the other parts here accept new settings while they run.
	ports     *ports
	clients   map[string]*upstream.Client
	mirror    *mirror.Mirror
	columns   *columns.Set
	exports   *exports
	audit     auditLog // the audit log; nil if nothing is recorded
	feed      *feed.Feed
	forecasts *forecast.Forecasts
	watches   *watch.Book
	push      *push.Book
	tables    *tables.Tables
}

// run reads the settings again after each signal, until ctx ends.
func (e *enforcer) run(ctx context.Context) error {
	for {
		select {
		case <-e.opts.Hangup:
			err := understudy.RecordAudit(ctx, e.policies.auditor, understudy.AuditEntry{Caller: understudy.Caller{Name: "SIGHUP"},
				Action: understudy.ActionAdminister, What: "reload"})
			if err != nil {
				e.ports.reopenAccessLog()
				e.log.Error("settings not loaded; the previous settings stay in effect", "err", err)
				continue
			}
			_, _ = e.reload(ctx) // reload logs its error
		case <-ctx.Done():
			return nil
		}
	}
}

// reload opens the access log again, and reads settings, secrets and users again. It applies what can change at run
// time. restart names the changes that need a restart. If anything is wrong, reload logs one line and changes nothing.
func (e *enforcer) reload(ctx context.Context) (restart []string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ports.reopenAccessLog()
	cfg, restart, err := e.load(ctx)
	e.settings.noteLoad(restart, err)
	switch {
	case err != nil:
		e.log.Error("settings not loaded; the previous settings stay in effect", "err", err)
		return restart, err
	case len(restart) > 0:
		e.log.Warn("settings loaded again; some take effect only after a restart", "restart", strings.Join(restart, ", "))
	default:
		e.log.Info("settings loaded again", "credentials", len(cfg.Credentials), "roles", len(cfg.Roles))
	}
	p := e.current.Load().policy
	if err = e.tables.SetPolicy(ctx, p.gate, p.tables); err != nil {
		err = fmt.Errorf("the settings are loaded, but %w", err)
	}
	return restart, err
}

// load reads and checks everything first. Then it applies the changes, which can no longer fail.
func (e *enforcer) load(ctx context.Context) (cfg *config.Settings, restart []string, err error) {
	if cfg, err = e.opts.ReadSettings(); err != nil {
		return nil, nil, err
	}
	started := e.opts.Settings
	if err := checkSources(started, cfg); err != nil {
		return nil, nil, err
	}
	again, err := cfg.ReadSources(e.opts.Folder)
	if err != nil {
		return nil, nil, err
	}
	var used *certificate.Certificate
	if e.ports.tls != nil && cfg.TLS.IsOn() {
		if used, err = cfg.TLS.Read(cfg, e.opts.Folder, e.opts.Dir.Path); err != nil {
			return nil, nil, err
		}
	}
	replaced, err := e.settings.secrets.NeedRestart(ctx, cfg, e.opts.Secrets)
	if err != nil {
		return nil, nil, err
	}
	secrets, err := readSecrets(ctx, cfg, e.sources, e.opts.Secrets)
	if err != nil {
		return nil, nil, err
	}
	polls := map[string][]string{}
	for _, src := range e.sources {
		if polls[src.Name], err = readPolls(src, cfg); err != nil {
			return nil, nil, fmt.Errorf("sources.%s.polls: %w", src.Name, err)
		}
	}
	p, err := e.policies.read(ctx, cfg)
	if err == nil {
		p, err = e.policies.withMadeCredentials(p, cfg)
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := e.build(cfg, p)
	if err != nil {
		return nil, nil, err
	}
	if err := e.feed.SetPolicy(ctx, p.feed()); err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	if err := e.setPolls(polls); err != nil {
		return nil, nil, errors.Join(err, d.Close(), e.feed.SetPolicy(ctx, e.current.Load().policy.feed()))
	}
	e.apply(cfg, secrets)
	if used != nil {
		e.ports.tls.Use(used)
		if err := e.opts.Dir.WriteRunning(e.ports.viewer(), e.ports.tls.Fingerprint()); err != nil {
			e.log.Error("commands cannot reach this server any more", "err", err)
		}
	}
	e.replaceHandlers(d)
	restart = slices.Concat(changedSpecs(e.sources, again), replaced, config.NeedRestart(started, cfg))
	if started.TLS.IsOn() != cfg.TLS.IsOn() || !reflect.DeepEqual(started.TLS.ACME, cfg.TLS.ACME) {
		restart = append(restart, "tls")
	}
	slices.Sort(restart)
	return cfg, slices.Compact(restart), nil
}

// readPolls returns the polls that the settings have for a source, checked with the current spec.
func readPolls(src *spec.Source, cfg *config.Settings) ([]string, error) {
	s := cfg.Sources[src.Name]
	polled := &spec.Source{Name: src.Name, Spec: src.Spec, User: src.User, Polls: s.Polls}
	err := config.CheckPolls(polled, s)
	return polled.Polls, err
}

// setPolls replaces the polls of every source. After an error it restores the polls that it has replaced.
func (e *enforcer) setPolls(polls map[string][]string) error {
	for i, src := range e.sources {
		err := e.mirror.SetPolls(src.Name, polls[src.Name])
		if err == nil {
			continue
		}
		for _, done := range e.sources[:i] {
			former, failed := readPolls(done, e.settings.current.Load())
			err = errors.Join(err, failed, e.mirror.SetPolls(done.Name, former))
		}
		return err
	}
	return nil
}

// apply passes the settings that can change at run time to the packages.
func (e *enforcer) apply(cfg *config.Settings, secrets map[string][]understudy.Secret) {
	for _, src := range e.sources {
		s, c := cfg.Sources[src.Name], e.clients[src.Name]
		c.SetBudget(s.Rate, s.Concurrency)
		if err := e.mirror.SetRate(src.Name, s.Rate); err != nil {
			e.log.Error("settings: rate", "source", src.Name, "err", err)
		}
		if err := errors.Join(e.mirror.Shadow().SetAnswers(src.Name, s.Answers), e.mirror.Shadow().SetChecks(src.Name, s.Checks)); err != nil {
			e.log.Error("settings: answers", "source", src.Name, "err", err)
		}
		c.SetQueue(cfg.Limits.Queue)
		// An unchanged credential is set too, because an upstream that refused it may accept it now.
		c.SetCredential("", secrets[src.Name][0], secrets[src.Name][1:]...)
	}
	e.settings.upstream.Store(&secrets)
	e.mirror.SetAges(config.Ages(&cfg.Mirror))
	e.mirror.SetLimits(config.MirrorLimits(&cfg.Limits))
	e.exports.setLimits(cfg)
	e.columns.SetLimit(config.ColumnsMemory(cfg, os.ReadFile))
	if e.audit != nil {
		e.audit.SetPolicy(cfg.Audit.Policy())
	}
	for _, f := range e.ports.servers {
		f.SetLimit(cfg.Limits.Connections)
	}
	e.settings.setLog(cfg)
	e.ports.access.SetJSON(cfg.Log.Format.Std() == logline.JSON)
	e.settings.current.Store(cfg)
}

// updateCredentials applies the credentials that were created at run time, under the current settings. It continues
// even if its caller has left, because the credentials are already stored.
func (e *enforcer) updateCredentials(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	cfg, p := e.settings.current.Load(), e.current.Load().policy
	if p.made == e.policies.credentials.Version() {
		return nil
	}
	p, err := e.policies.withMadeCredentials(p, cfg)
	if err != nil {
		return err
	}
	d, err := e.build(cfg, p)
	if err != nil {
		return err
	}
	if err := e.feed.SetPolicy(ctx, p.feed()); err != nil {
		return errors.Join(err, d.Close())
	}
	e.replaceHandlers(d)
	return nil
}

// followCredentials applies the credentials that another process has changed, until ctx ends. A revoked credential is
// refused before that, by its grant.
func (e *enforcer) followCredentials(ctx context.Context) error {
	for {
		select {
		case <-e.policies.credentials.Changes():
		case <-ctx.Done():
			return nil
		}
		for err := e.updateCredentials(ctx); err != nil && ctx.Err() == nil; err = e.updateCredentials(ctx) {
			e.log.Error("changed credentials are not accepted yet; trying again", "err", err)
			_ = retry.Wait(ctx, credentialsPause)
		}
	}
}

// credentialsPause is the pause between two attempts to apply changed credentials.
const credentialsPause = 5 * time.Second

// replaceHandlers puts new handlers on the ports. Running requests still use the old handlers. Exports may take long, so an
// export ends early if the new policy decides differently for its caller. The old viewer is closed after its last request.
func (e *enforcer) replaceHandlers(d *handlerSet) {
	e.exports.replace(d.policy)
	e.current.Store(d)
	e.forecasts.SetAlerts(d.policy.alerts)
	e.ports.replaceHandlers(d, func() {
		if err := d.Close(); err != nil {
			e.log.Error("close the previous viewer", "err", err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), kvTimeout)
	defer cancel()
	if who := d.policy.people; who != nil { // the sessions of people who may no longer sign in end
		if err := who.EndGone(ctx); err != nil {
			e.log.Error("ended sessions could not be deleted from the store; they are not accepted any more", "err", err)
		}
	}
	e.push.SetPolicy(d.policy.push)
	if err := e.push.CheckOwners(ctx); err != nil {
		e.log.Error("browsers and devices of people without access could not be removed; they receive nothing", "err", err)
	}
	e.watches.SetPolicy(d.watches)
	e.settings.policies.Add(1)
}

// kvTimeout is the maximum time for writing values to the KV store.
const kvTimeout = 5 * time.Second
