// Connect: the proxy for programs that keep upstream's own addresses, joined to the application.

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"understudy/internal/connect"
	"understudy/internal/diagnostics"
	"understudy/internal/frontend"
)

// tunnels are the proxy and the server of what comes in its tunnels; nil: there is none.
type tunnels struct {
	*connect.Proxy
	inside *frontend.Server // has no port
}

// connectPort is the name of the proxy's port. No source has it.
const connectPort = "connect"

// tunnelled is the application with that proxy.
type tunnelled struct{ *App }

// open binds the port of the proxy, after all others, and opens the certificate authority.
func (h tunnelled) open(ctx context.Context) error {
	o := h.cfg.Connect
	if o == nil {
		return nil
	}
	var origins []connect.Origin
	hosts := []string{}
	for _, src := range h.cfg.Connect.Serves(h.sources) {
		for _, at := range connect.Origins(src.Spec, h.cfg.Sources[src.Name].Upstream) {
			origins, hosts = append(origins, at), append(hosts, at.Host)
		}
	}
	authority, made, err := connect.OpenAuthority(h.opts.Dir.Path, hosts, time.Now)
	if err != nil {
		return err
	}
	if made {
		h.log.Warn("the certificate of the proxy was made; programs read it when they start", "file", authority.Path(), "hosts", hosts)
	}
	if err := h.openPort(ctx, connectPort, o.Listen, "--connect HOST:PORT", frontend.PlainRefusal()); err != nil {
		return err
	}
	limits := &h.cfg.Limits
	p := connect.New(connect.Options{Authority: authority, Origins: origins, Tunnel: o.Tunnel, Tunnels: o.Tunnels,
		AllowPrivate: o.AllowPrivate, Idle: limits.IdleTime.Std(), Greet: limits.HeadTime.Std(), Log: h.access, Now: time.Now})
	h.closers = append(h.closers, p.Close)
	h.tunnels = &tunnels{p, frontend.NewServer(connectPort, p.Listener(), nil, limits, nil, h.log)}
	h.servers[len(h.servers)-1].OnShutdown(p.End)
	return nil
}

// add adds to the handlers of a policy those of the proxy.
func (h tunnelled) add(p policy, d *handlerSet) {
	if h.tunnels == nil {
		return
	}
	var all []connect.Served
	for _, src := range h.cfg.Connect.Serves(h.sources) {
		upstream := h.cfg.Sources[src.Name].Upstream
		px := h.profiles.Handler(d.proxies[src.Name].At(connect.URLs(src.Spec, upstream), p.tunnelled))
		for _, at := range connect.Origins(src.Spec, upstream) {
			all = append(all, connect.Served{Origin: at, Handler: px})
		}
	}
	d.inside = connect.Inside(all)
	d.handlers, d.known = append(d.handlers, h.tunnels), append(d.known, nil)
}

// counts are those of the proxy's tunnels, for its port.
func (h tunnelled) counts(port string) *diagnostics.Tunnels {
	if h.tunnels == nil || port != connectPort {
		return nil
	}
	out := diagnostics.Tunnels(h.tunnels.Stats())
	return &out
}

// serving are all that are to run.
func (h tunnelled) serving() []*frontend.Server {
	if h.tunnels == nil {
		return h.servers
	}
	return append(slices.Clone(h.servers), h.tunnels.inside)
}

// noRole is what callers are told that send a source's own credential, while they have no role.
func noRole(narrowest string) string {
	if narrowest == "" {
		narrowest = "NAME"
	}
	return fmt.Sprintf("the source's own credential has no role here; add this line to the settings: connect: {role: %s}", narrowest)
}
