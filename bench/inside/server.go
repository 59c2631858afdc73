// Server: the packages are connected in this process as cmd connects them.

package inside

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"understudy"
	"understudy/bench/rig"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/proxy"
	"understudy/internal/store"
	"understudy/kit/accesslog"
	"understudy/mirror"
	"understudy/spec"
	"understudy/upstream"
)

// server is a drop-in in this process.
type server struct {
	address string
	server  *http.Server
	client  *upstream.Client
	db      *store.DB
	log     *os.File
	end     context.CancelFunc
	running sync.WaitGroup
}

// openServer connects the packages with the settings of fast.
func openServer(ctx context.Context, r *rig.Run, api string) (*server, error) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		return nil, err
	}
	src := &spec.Source{Name: "twilio", Spec: sp, User: rig.Account}
	specs := map[string]*spec.Spec{src.Name: sp}
	log := slog.New(slog.DiscardHandler)
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(r.Dir, "inside.db"), Specs: specs, Logger: log})
	if err != nil {
		return nil, err
	}
	h := &server{db: db}
	if err := h.open(ctx, r, src, api, log); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return h, nil
}

func (h *server) open(ctx context.Context, r *rig.Run, src *spec.Source, api string, log *slog.Logger) error {
	client, err := upstream.New(upstream.Options{Source: src, Base: api, Secret: understudy.NewSecret(rig.ApiToken), Rate: 100000, Logger: log})
	if err != nil {
		return err
	}
	m, err := mirror.New(mirror.Options{Sources: []mirror.Source{{Source: src, Upstream: client}}, Store: h.db, Hot: 25 * rig.Mib, Logger: log})
	if err != nil {
		return err
	}
	gate, err := access.New(map[string]*spec.Spec{src.Name: src.Spec}, nil)
	if err != nil {
		return err
	}
	book, err := callers.New(callers.Options{Sources: []*spec.Source{src}, Credentials: []callers.Credential{
		{Name: "bench", Source: src.Name, User: rig.Account, Secret: understudy.NewSecret(rig.OurToken), Grant: understudy.Grant{Role: understudy.RoleAll, IssuedBy: "bench"}},
	}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	src.PublicURL = "http://" + l.Addr().String()
	file, err := os.Create(filepath.Join(r.Dir, "access.log"))
	if err != nil {
		return errors.Join(err, l.Close())
	}
	lines := accesslog.New(file)
	p, err := proxy.New(proxy.Options{Source: src, Mirror: m, Gate: gate, Callers: book, Log: lines, Logger: log, Now: time.Now})
	if err != nil {
		return errors.Join(err, l.Close(), file.Close())
	}
	h.address, h.client, h.log = src.PublicURL, client, file
	h.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	running, end := context.WithCancel(ctx)
	h.end = end
	// They end with the context or the server, so their errors do not matter.
	h.running.Go(func() { _ = h.server.Serve(l) })
	for _, task := range []func(context.Context) error{m.Run, client.Run, lines.Run} {
		h.running.Go(func() { _ = task(running) })
	}
	return nil
}

// close ends everything and waits for it.
func (h *server) close() error {
	err := h.server.Close()
	h.end()
	h.running.Wait()
	return errors.Join(err, h.client.Close(), h.db.Close(), h.log.Close())
}
