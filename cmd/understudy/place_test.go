// Place: the server is asked when one holds the folder, else the folder is held
// while the work is done, and given back.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/internal/datadir"
)

func TestPlace(t *testing.T) {
	base := t.TempDir()
	data, file := filepath.Join(base, "data"), filepath.Join(base, "understudy.yml")
	settings := "data: " + data + `
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  a: {spec: twilio, user: AC00000000000000000000000000000001, secret: "file:not.there", listen: "127.0.0.1:0"}
`
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	never := func(context.Context, *admin) error { t.Error("a server is asked"); return nil }
	p := &process{env: emptyEnv, stderr: io.Discard}
	for _, c := range []dataFlags{{Config: file}, {Config: file, Data: data}} {
		if err := c.askServer(t.Context(), p, true, never); err == nil || !strings.Contains(err.Error(), "name it with --data") {
			t.Errorf("no folder: %v", err)
		}
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	c, mine := dataFlags{Config: file}, errors.New("mine")
	for range 2 { // the second time shows that the first gave it back
		err := c.askServer(t.Context(), p, true, func(ctx context.Context, server *admin) error {
			if _, err := os.Stat(filepath.Join(data, datadir.StoreFile)); err != nil {
				t.Error(err)
			}
			var refused *refusal
			if err := server.ask(ctx, http.MethodGet, "/-/stats", nil, nil); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
				t.Errorf("what is no command: %v", err)
			}
			if err := (&admin{url: server.url, client: server.client}).ask(ctx, http.MethodGet, "/-/index", nil, nil); !errors.As(err, &refused) ||
				refused.Status != http.StatusUnauthorized {
				t.Errorf("a command without the token: %v", err)
			}
			holder := fmt.Sprintf("is held by process %d;", os.Getpid())
			if err := c.askServer(ctx, p, true, never); err == nil || !strings.Contains(err.Error(), holder) {
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
	if err := dir.WriteRunning("http://127.0.0.1:1", ""); err != nil {
		t.Fatal(err)
	}
	err = c.askServer(t.Context(), p, true, func(_ context.Context, server *admin) error {
		if server.url != "http://127.0.0.1:1" || server.secret != dir.Token {
			t.Errorf("%+v", server)
		}
		return mine
	})
	if err = errors.Join(dir.Close(), err); !errors.Is(err, mine) {
		t.Error(err)
	}
}

func emptyEnv(string) (string, bool) { return "", false }
