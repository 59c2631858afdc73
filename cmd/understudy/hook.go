// Hook: status callbacks of upstream, on the viewer's port.

package main

import (
	"net/http"
	"sync"
	"understudy/internal/config"

	"understudy"
	"understudy/internal/proxy"
)

// hookKeys are the secrets callbacks are signed with, by source. They follow the
// settings.
type hookKeys struct {
	sync.RWMutex
	of map[string]understudy.Secret
}

func (k *hookKeys) set(source string, secret understudy.Secret) {
	k.Lock()
	defer k.Unlock()
	if k.of == nil {
		k.of = map[string]understudy.Secret{}
	}
	k.of[source] = secret
}

func (k *hookKeys) get(source string) understudy.Secret {
	k.RLock()
	defer k.RUnlock()
	return k.of[source]
}

// controlHook puts callbacks beside the others under /-/.
func (h *house) controlHook(cfg *config.Settings, mux *http.ServeMux) error {
	public := cfg.Viewer.PublicURL
	if public == "" {
		public = h.faces[0].url()
	}
	hook, err := proxy.NewHook(proxy.HookOptions{Sources: h.sources, PublicURL: public, Secret: h.keys.get, Hint: h.mirror.Hint})
	if err != nil {
		return err
	}
	mux.Handle("/-/hook/", hook)
	return nil
}
