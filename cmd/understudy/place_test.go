// Place: the server is asked when one holds the folder, else the folder is held
// while the work is done, and given back.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/internal/config"
	"understudy/internal/datadir"
)

func TestPlace(t *testing.T) {
	base := t.TempDir()
	data, file := filepath.Join(base, "data"), filepath.Join(base, "understudy.yml")
	if err := os.WriteFile(file, []byte("data: "+data+"\nsources: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	never := func(admin) error { t.Error("a server is asked"); return nil }
	alone := func(*config.Settings, string, *datadir.Dir) error { t.Error("the folder is worked in"); return nil }
	p := &process{env: emptyEnv}
	for _, c := range []place{{Config: file}, {Config: file, Data: data}} {
		if err := c.work(p, never, alone); err == nil || !strings.Contains(err.Error(), "name it with --data") {
			t.Errorf("no folder: %v", err)
		}
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	c, mine := place{Config: file}, errors.New("mine")
	for range 2 { // the second time shows that the first gave it back
		err := c.work(p, never, func(cfg *config.Settings, settings string, dir *datadir.Dir) error {
			if cfg.Data != data || settings != base || dir.Database(cfg.Store.DSN) != filepath.Join(data, datadir.StoreFile) {
				t.Errorf("%s, %s, %s", cfg.Data, settings, dir.Database(cfg.Store.DSN))
			}
			if err := c.work(p, never, alone); err == nil || !strings.Contains(err.Error(), "is held by another server") {
				t.Errorf("a folder that is held by nobody who can be asked: %v", err)
			}
			return mine
		})
		if !errors.Is(err, mine) {
			t.Errorf("%v", err)
		}
	}
	dir, err := datadir.Open(data, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Announce("http://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	err = c.work(p, func(server admin) error {
		if server.Viewer != "http://127.0.0.1:1" || server.Token != dir.Token {
			t.Errorf("%+v", server)
		}
		return mine
	}, alone)
	if err = errors.Join(dir.Close(), err); !errors.Is(err, mine) {
		t.Error(err)
	}
}

func emptyEnv(string) (string, bool) { return "", false }
