// Whose CPU time a sample is.

package inside

import (
	"testing"

	"github.com/google/pprof/profile"
)

func TestRoom(t *testing.T) {
	for _, c := range []struct {
		want  string
		stack []string // innermost first
	}{
		{"internal/store", []string{"modernc.org/sqlite/lib.sqlite3_step", "database/sql.(*Tx).Exec", "understudy/internal/store.(*DB).Save", "understudy/mirror.(*Mirror).fill"}},
		{"mirror", []string{"github.com/klauspost/compress/zstd.(*Encoder).EncodeAll", "understudy/mirror.(*hot).put"}},
		{"kit/jsonspan", []string{"understudy/kit/jsonspan.Document", "understudy/upstream.(*Client).Fetch"}},
		{"kit/lru", []string{"understudy/kit/lru.(*Cache[go.shape.string,go.shape.struct { understudy/internal/proxy.target *understudy.Target }]).Get"}},
		{"understudy", []string{"understudy.(*Spec).Match", "understudy/internal/proxy.(*Proxy).ServeHTTP"}},
		{"garbage collector", []string{"runtime.scanobject", "runtime.gcBgMarkWorker"}},
		{"net/http, serving", []string{"syscall.Syscall", "net/http.(*conn).serve"}},
		{"net/http, asking upstream", []string{"syscall.Syscall", "net/http.(*persistConn).readLoop"}},
		{"internal/store", []string{"database/sql.(*DB).connectionOpener"}},
		{"net/http, serving", []string{"syscall.write", "net/http.(*response).Write", "understudy/internal/proxy.(*Proxy).send"}},
		{"the bench itself", []string{"net.(*conn).Read", "understudy/bench/rig.ownClient"}},
		{"runtime, scheduling", []string{"runtime.futex", "runtime.mcall"}},
	} {
		s := &profile.Sample{}
		for _, name := range c.stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		if got := room(s); got != c.want {
			t.Errorf("%v: %s, want %s", c.stack, got, c.want)
		}
	}
}
