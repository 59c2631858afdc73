// This file contains the servers of all ports, and the handlers around every handler.

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"understudy/internal/certificate"
	"understudy/internal/config"
	"understudy/internal/connect"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/diagnostics/profile"
	"understudy/internal/frontend"
	"understudy/internal/tracing"
	"understudy/kit/accesslog"
	"understudy/kit/logline"
	"understudy/request"
	"understudy/spec"
)

// ports are the servers of the application.
type ports struct {
	limits   *config.Limits
	log      *slog.Logger
	servers  []*frontend.Server  // the servers of all ports, the viewer's server first
	tls      *certificate.Source // the certificate of the ports; nil without TLS
	tunnels  *tunnels            // the tunnels; nil if the settings have none
	profiles *profile.Recorder
	access   *accesslog.Log
	file     *accesslog.File // the file of the access log; nil if the log goes to standard error or is off
	tracer   *tracing.Tracer
	unread   *frontend.Unread
	ending   atomic.Bool
}

// listen takes the inherited sockets of a port or binds it, with an express lane of express bytes of memory, and with TLS if secure is
// true. It returns a function that closes the port.
func (p *ports) listen(ctx context.Context, in frontend.Inherited, name, addr, flag string, refusal []byte, express int64, secure bool,
) (free func() error, err error) {
	l, conns := in.Take(name, addr)
	if l == nil {
		if l, err = frontend.Listen(ctx, addr, flag); err != nil {
			return nil, err
		}
	}
	f := frontend.NewServer(name, l, nil, p.limits, refusal, p.log)
	f.Use(addr, conns)
	f.SetUnread(p.unread)
	if express > 0 {
		f.SetExpress(express)
	}
	if secure {
		f.SetTLS(p.tls.Config())
	}
	p.servers = append(p.servers, f)
	return frontend.CloseListener(l), nil
}

// viewer returns the URL of the first port, which is the viewer's.
func (p *ports) viewer() string { return p.servers[0].URL() }

// publicViewer returns the URL at which browsers reach the viewer.
func (p *ports) publicViewer(cfg *config.Settings) string {
	return strings.TrimSuffix(cmp.Or(cfg.Viewer.PublicURL, p.viewer()), "/")
}

// address returns the URL of a source's port.
func (p *ports) address(source string) string {
	i := slices.IndexFunc(p.servers, func(f *frontend.Server) bool { return f.Name == source })
	return p.servers[i].URL()
}

// end notes that the application is ending. Before a restart, all requests are still answered: by the next program.
func (p *ports) end(cause error) {
	p.ending.Store(!errors.Is(cause, frontend.ErrRestart))
	p.profiles.Stop()
}

// openAccessLog opens the file of the access log, or uses standard error.
func (a *App) openAccessLog() error {
	p, c := a.ports, a.opts.Settings.Log
	switch c.Access {
	case "off":
		return nil
	case "":
		p.access = accesslog.New(a.opts.Stderr)
	default:
		f, err := accesslog.OpenFile(c.Access, time.Now)
		if err != nil {
			return fmt.Errorf("log.access: %w; name a file, a named pipe or a device", err)
		}
		if f.IsPipe() {
			a.log.Info("log.access is not a file: lines that nobody reads are lost and counted", "path", c.Access)
		}
		a.closers = append(a.closers, f.Close)
		p.access, p.file = accesslog.New(f), f
	}
	a.tasks = append(a.tasks, p.access.Run)
	p.access.SetJSON(c.Format.Std() == logline.JSON)
	p.access.IsID = func(text string) bool {
		return slices.ContainsFunc(a.sources, func(s *spec.Source) bool { return s.Spec.HasID(text) })
	}
	return nil
}

// reopenAccessLog opens the file of the access log again, so that lines go to its path after a rename (logrotate).
func (p *ports) reopenAccessLog() {
	if p.file == nil {
		return
	}
	if err := p.access.Flush(); err != nil {
		p.log.Error("log.access: waiting lines are lost", "err", err)
	}
	if err := p.file.Reopen(); err != nil {
		p.log.Error("log.access cannot be opened again; lines are still written to the previous file", "err", err)
	}
}

// replaceHandlers puts new handlers on the ports. end is called after the last request of the former handlers.
func (p *ports) replaceHandlers(d *handlerSet, end func()) {
	for i, f := range p.servers {
		f.SetClients(new(d.clients[f.Name]))
		f.SetHandler(d.handlers[i], d.targets[i], end)
		end = nil
	}
	if p.tunnels != nil {
		p.tunnels.inside.SetHandler(d.tunnelled, nil, nil)
	}
}

// unreadLoad returns the memory in use, and its limit, for responses that clients have not read yet, in bytes.
func (p *ports) unreadLoad() request.Load {
	limit, now, dropped := p.unread.Load()
	return request.Load{Limit: limit, Now: now, Dropped: dropped}
}

// loads returns for each port its limits and how much of them is used.
func (p *ports) loads() map[string]diagnostics.Port {
	out := map[string]diagnostics.Port{}
	for _, f := range p.servers {
		l := f.Load()
		port := diagnostics.Port{Limits: map[string]request.Load{
			"connections": {Limit: l.Limit, Now: l.Now, Refused: l.Refused, Dropped: l.Dropped},
			"clients":     {Refused: l.RefusedClients},
			"headers":     {Limit: int64(p.limits.Headers), Refused: l.LargeHeads},
			"head_time":   {Limit: int64(p.limits.HeadTime.Std() / time.Second), Refused: l.SlowHeads},
		}, Express: l.Express}
		if p.tunnels != nil && f.Name == connectPort {
			port.Tunnels = new(p.tunnels.proxy.Stats())
		}
		out[f.Name] = port
	}
	return out
}

// publicURL returns the default address to which absolute URLs are rewritten: the URL of the drop-in port. For
// a port that listens on all addresses the host is 127.0.0.1.
func publicURL(port string) string {
	return strings.NewReplacer("//0.0.0.0:", "//127.0.0.1:", "//[::]:", "//127.0.0.1:").Replace(port)
}

// tunnels contains the forward proxy for clients that keep using the upstream's own addresses, and the server for
// the requests in its tunnels.
type tunnels struct {
	proxy   *connect.Proxy
	inside  *frontend.Server          // the server for requests in tunnels, which has no port
	sources []*spec.Source            // the sources whose own addresses can be reached through tunnels
	bases   map[string]*config.Source // the sources by name
}

// connectPort is the name of the forward proxy's port. No source has this name.
const connectPort = "connect"

// openTunnels binds the port of the forward proxy, after all other ports, and opens the certificate authority.
func (a *App) openTunnels(ctx context.Context) error {
	cfg := a.opts.Settings
	o := cfg.Connect
	if o == nil {
		return nil
	}
	var origins []connect.Origin
	hosts := []string{}
	serves := o.Serves(a.sources)
	for _, src := range serves {
		for _, at := range connect.Origins(src.Spec, cfg.Sources[src.Name].Upstream) {
			origins, hosts = append(origins, at), append(hosts, at.Host)
		}
	}
	authority, made, err := certificate.OpenAuthority(filepath.Join(a.opts.Dir.Path, datadir.AuthorityFile), hosts, time.Now)
	if err != nil {
		return err
	}
	if made {
		a.log.Warn("the certificate of the proxy was created; programs read it when they start", "file", authority.Path(), "hosts", hosts)
	}
	if err := a.openPort(ctx, connectPort, o.Listen, "--connect HOST:PORT", frontend.PlainRefusal()); err != nil {
		return err
	}
	limits := &cfg.Limits
	p := connect.New(connect.Options{Authority: authority, Origins: origins, Tunnel: o.Tunnel, Tunnels: o.Tunnels,
		AllowPrivate: o.AllowPrivate, Idle: limits.IdleTime.Std(), HandshakeTimeout: limits.HeadTime.Std(), Log: a.ports.access, Now: time.Now})
	a.closers = append(a.closers, p.Close)
	a.ports.tunnels = &tunnels{proxy: p, inside: frontend.NewServer(connectPort, p.Listener(), nil, limits, nil, a.log), sources: serves,
		bases: cfg.Sources}
	a.ports.tunnels.inside.SetUnread(a.ports.unread)
	a.ports.servers[len(a.ports.servers)-1].AddShutdownHook(p.End)
	return nil
}

// handler returns the handler for requests in tunnels. For each source it uses the handler that serve returns.
func (t *tunnels) handler(serve func(source string, url func(path string) string) http.Handler) http.Handler {
	var all []connect.Served
	for _, src := range t.sources {
		upstream := t.bases[src.Name].Upstream
		h := serve(src.Name, connect.URLs(src.Spec, upstream))
		for _, at := range connect.Origins(src.Spec, upstream) {
			all = append(all, connect.Served{Origin: at, Handler: h})
		}
	}
	return connect.NewHandler(all)
}
